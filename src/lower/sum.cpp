// SPDX-License-Identifier: Apache-2.0
// ADD, SUB, MAXIMUM and MINIMUM of two computed tensors: weighted sums.
//
//   a + b, a - b    one sum; weights are in the ratio of the scales
//   max(a, b)       a - 2 d with d = (a - b) / 2 limited to 0 and below: two sums. d has 8 bits, so that half a step is
//                   lost: where b - a is odd and positive the result is one off
//   min(a, b)       the same with d limited to 0 and above
//
// How it is known: ADD and MAXIMUM are what Google's compiler makes (codegen_ops.md 3); no example of SUB of computed
// tensors or of MINIMUM is known, they are made in the same way with other weights and limits.
#include <algorithm>

#include "ir/describe.h"
#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/sum.h"

namespace reef::lower {
namespace {

using tiled::Sum;
using tiled::TiledTensor;

bool is_sliced(const TiledTensor& tensor) { return tensor.is_part || tensor.rows.is_local; }

// Google's programs add tensors without halo only; equal layouts are enough.
bool can_be_walked_together(tiled::Level level, const TiledTensor& a, const TiledTensor& b) {
  if (is_sliced(a) || is_sliced(b)) return a.walks_like(b);
  if (!a.lies_like(b)) return false;
  if (a.spread != tiled::Spread::kGrid || level != tiled::Level::kAsGoogle) return true;
  return !a.has_halo() && a.pitch == a.pixel_words() * chip::kNarrowWordBytes;
}

Status finish_sum(Builder& builder, tiled::Step& step) {
  Sum sum = std::get<Sum>(step.work);
  if (!can_be_walked_together(builder.level(), builder.tensor(sum.a), builder.tensor(sum.b))) {
    const bool same = sum.a == sum.b;
    for (std::int32_t* operand : {&sum.a, &sum.b}) {
      if (operand == &sum.b && same) {
        sum.b = sum.a;
        break;
      }
      const TiledTensor& tensor = builder.tensor(*operand);
      const bool is_plain = !tensor.has_halo() && tensor.pitch == tensor.pixel_words() * chip::kNarrowWordBytes;
      if (!is_plain) *operand = insert_copy_without_halo(builder, step.op, *operand, sum.output);
    }
    step.reads = {sum.a, sum.b};
  }
  // In the place of the operand that was computed last, as in Google's programs.
  if (!builder.take_place(sum.output, std::max(sum.a, sum.b))) {
    builder.take_place(sum.output, std::min(sum.a, sum.b));
  }
  sum.words = builder.new_narrow(tiled::kSumWords * chip::kNarrowWordBytes);
  sum.lines = builder.new_wide(tiled::kSumLines);
  step.narrow_used.push_back(sum.words);
  step.wide_used.push_back(sum.lines);
  step.work = sum;
  return ok_status();
}

// A new tensor for the operator's result.
Result<std::int32_t> new_result(Builder& builder, std::int32_t op, std::int32_t like) {
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const std::int32_t result, builder.new_like(to, like));
  builder.set_value(to, {result, {}});
  return result;
}

}  // namespace

void add_sum_step(Builder& builder, std::int32_t op, const Sum& sum) {
  builder.add_step(op, sum, {Read{sum.a}, Read{sum.b}}, {sum.output}, finish_sum);
}

Status lower_sum(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const bool with_constant, lower_with_constant(builder, op));
  if (with_constant) return ok_status();
  REEF_ASSIGN_OR_RETURN(const Operands operands, computed_operands(builder, op));
  Sum sum;
  sum.a = operands.a;
  sum.b = operands.b;
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(builder.op(op)));
  REEF_ASSIGN_OR_RETURN(sum.output, new_result(builder, op, sum.a));
  const TiledTensor &a = builder.tensor(sum.a), &b = builder.tensor(sum.b), &out = builder.tensor(sum.output);
  const auto add = numeric::chip_add(a.scale, a.zero_point, b.scale, b.zero_point, out.scale);
  if (!add) return unsupported("scales {}, {} and {} cannot be added", a.scale, b.scale, out.scale);
  const bool minus = builder.op(op).type == "SUB";
  sum.a_weight = add->a_weight;
  sum.b_weight = minus ? -add->b_weight : add->b_weight;
  sum.offset = -(sum.a_weight * a.zero_point + sum.b_weight * b.zero_point);
  sum.multiplier = add->multiplier;
  sum.output_zero = out.zero_point;
  sum.clamp = numeric::chip_clamp(out.scale, out.zero_point, activation);
  add_sum_step(builder, op, sum);
  return ok_status();
}

Status lower_extreme(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const Operands operands, computed_operands(builder, op));
  const std::int32_t to = builder.op(op).outputs[0];
  for (const std::int32_t tensor : builder.op(op).inputs) {
    REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(tensor), builder.source(to)));
    if (!same) return unsupported("operands and result are quantized differently");
  }
  // The difference, in steps of twice the scale.
  constexpr std::int32_t kDifferenceZero = 128;
  const bool is_maximum = builder.op(op).type == "MAXIMUM";
  Sum half;
  half.a = operands.b;
  half.b = operands.a;
  REEF_ASSIGN_OR_RETURN(half.output, builder.new_like(to, half.a));
  const float scale = builder.tensor(half.a).scale;
  half.a_weight = 1;
  half.b_weight = -1;
  half.multiplier = (1.0f / (2.0f * scale)) * scale;
  const numeric::ChipClamp whole = numeric::chip_clamp(2.0f * scale, kDifferenceZero, numeric::ChipActivation::kNone);
  half.clamp = is_maximum ? numeric::ChipClamp{0, whole.min} : numeric::ChipClamp{whole.max, 0};
  half.output_zero = kDifferenceZero;
  Sum result;
  result.a = half.a;
  result.b = half.output;
  REEF_ASSIGN_OR_RETURN(result.output, new_result(builder, op, half.a));
  const TiledTensor& out = builder.tensor(result.output);
  result.a_weight = 1;
  result.b_weight = -2;
  result.offset = 2 * kDifferenceZero - out.zero_point;
  result.multiplier = (1.0f / scale) * scale;
  result.clamp = numeric::chip_clamp(scale, out.zero_point, numeric::ChipActivation::kNone);
  result.output_zero = out.zero_point;
  add_sum_step(builder, op, half);
  add_sum_step(builder, op, result);
  return ok_status();
}

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
// ADD, SUB and SQUARED_DIFFERENCE of two tensors: a weighted sum, with weights in the ratio of the scales; the squares
// by a table.
//
// How it is known: ADD is what Google's compiler makes (docs/hardware/google_programs.md#add), and so are the numbers
// of SQUARED_DIFFERENCE (docs/hardware/public_files.md#larger-files); no example of SUB of computed tensors is known,
// it is made in the same way with a negative weight.
#include <algorithm>
#include <cmath>

#include "ir/describe.h"
#include "ir/op.h"
#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::Sum;

bool is_sliced(const TiledTensor& tensor) { return tensor.is_part || tensor.rows.is_local; }

// Google's programs add tensors without halo only; equal layouts are enough.
bool can_be_walked_together(tiled::Level level, const TiledTensor& a, const TiledTensor& b) {
  if (is_sliced(a) || is_sliced(b)) return a.walks_like(b);
  if (!a.lies_like(b)) return false;
  if (a.spread != tiled::Spread::kGrid || level != tiled::Level::kAsGoogle) return true;
  return !a.has_halo() && a.pitch == a.pixel_words() * chip::kNarrowWordBytes;
}

// Whether a tile's buffer holds the pixels that it owns and nothing else, as a copy does: no halo, no channels of
// others in between, no room for what patches of pixels compute beyond a tile (pixel_patches.h).
bool is_packed(const TiledTensor& tensor) {
  const auto holds_its_own = [](const tiled::AxisPartition& axis) {
    for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
      if (axis.tile(t).own() > 0 && axis.length(t) != axis.tile(t).own()) return false;
    }
    return true;
  };
  return tensor.pitch == tensor.pixel_words() * chip::kNarrowWordBytes && holds_its_own(tensor.rows) &&
         holds_its_own(tensor.columns);
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
      if (!is_packed(builder.tensor(*operand))) {
        *operand = insert_copy_without_halo(builder, step.op, *operand, sum.output);
      }
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

}  // namespace

Result<std::int32_t> new_result(Builder& builder, std::int32_t op, std::int32_t like) {
  const std::int32_t to = builder.op(op).outputs[0];
  REEF_ASSIGN_OR_RETURN(const std::int32_t result, builder.new_like(to, like));
  builder.set_value(to, {result, {}});
  return result;
}

void add_sum_step(Builder& builder, std::int32_t op, const Sum& sum) {
  builder.add_step(op, sum, {Read{sum.a}, Read{sum.b}}, {sum.output}, finish_sum);
}

Result<tiled::WeightedSum> weighted_sum(const ir::Operator& op, const TiledTensor& a, const TiledTensor& b,
                                        const TiledTensor& out) {
  REEF_ASSIGN_OR_RETURN(const numeric::ChipActivation activation, fused_activation(op));
  const bool squares = op.type == Op::SQUARED_DIFFERENCE, minus = squares || op.type == Op::SUB;
  // A square's table takes the difference itself.
  const auto add = numeric::chip_add(a.scale, a.zero_point, b.scale, b.zero_point, squares ? 1.0f : out.scale);
  const bool is_scale = out.scale > 0 && std::isfinite(out.scale);
  if (!add || !is_scale) {
    return unsupported("scales {}, {} and {} do not go together", a.scale, b.scale, out.scale);
  }
  tiled::WeightedSum sum;
  sum.a_weight = add->a_weight;
  sum.b_weight = minus ? -add->b_weight : add->b_weight;
  sum.offset = -(sum.a_weight * a.zero_point + sum.b_weight * b.zero_point);
  sum.multiplier = add->multiplier;
  sum.output_zero = out.zero_point;
  sum.clamp = numeric::chip_clamp(out.scale, out.zero_point, activation);
  if (squares) sum.function = numeric::chip_square(out.scale);
  return sum;
}

// ADD, SUB, SQUARED_DIFFERENCE.
Status lower_sum(Builder& builder, std::int32_t op) {
  if (builder.op(op).type != Op::SQUARED_DIFFERENCE) {
    REEF_ASSIGN_OR_RETURN(const bool with_constant, lower_with_constant(builder, op));
    if (with_constant) return ok_status();
  }
  REEF_ASSIGN_OR_RETURN(const bool with_numbers, lower_with_pixel_numbers(builder, op));
  if (with_numbers) return ok_status();
  REEF_ASSIGN_OR_RETURN(const Operands operands, spread_operands(builder, op));
  Sum sum;
  sum.a = operands.a;
  sum.b = operands.b;
  REEF_ASSIGN_OR_RETURN(sum.output, new_result(builder, op, sum.a));
  const TiledTensor &a = builder.tensor(sum.a), &b = builder.tensor(sum.b), &out = builder.tensor(sum.output);
  REEF_ASSIGN_OR_RETURN(static_cast<tiled::WeightedSum&>(sum), weighted_sum(builder.op(op), a, b, out));
  add_sum_step(builder, op, sum);
  return ok_status();
}

}  // namespace reef::lower

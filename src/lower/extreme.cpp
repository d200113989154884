// SPDX-License-Identifier: Apache-2.0
// MAXIMUM and MINIMUM.
//
// Of two computed tensors, as Google's compiler makes MAXIMUM (docs/hardware/google_programs.md#maximum):
//   max(a, b)   a - 2 d with d = (a - b) / 2 limited to 0 and below: two sums. d has 8 bits, so that half a step is
//               lost: where b - a is odd and positive the result is one off
//   min(a, b)   the same with d limited to 0 and above; no example of it is known
// With a constant, of which no example is known either, by our own patterns, all exact:
//   one number        a limit of the copy
//   one per channel   c + max(x - c, 0), or c - max(c - x, 0): two changes of bias
//   anything else     the same as two sums, of the constant as a tensor
#include "ir/op.h"
#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::Sum;

constexpr float kHighest = 255;

bool is_maximum(const Builder& builder, std::int32_t op) { return builder.op(op).type == Op::MAXIMUM; }

numeric::ChipClamp whole_range(const TiledTensor& tensor) {
  return numeric::chip_clamp(tensor.scale, tensor.zero_point, numeric::ChipActivation::kNone);
}

// A tensor for differences, whose zero is 0.
Result<std::int32_t> new_difference(Builder& builder, std::int32_t op, std::int32_t like) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t made, builder.new_like(builder.op(op).outputs[0], like));
  builder.program().tensor(made).zero_point = 0;
  return made;
}

Status with_one_constant(Builder& builder, std::int32_t op, const OneConstant& one) {
  const std::vector<std::int32_t>& values = one.constant.values;  // relative to the zero point
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, with_channels(builder, one.computed, values.size()));
  const bool maximum = is_maximum(builder, op);
  if (values.size() == 1) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t output, new_result(builder, op, input));
    ChannelScaling limited{{1.0f}, {0}, whole_range(builder.tensor(output))};
    (maximum ? limited.clamp.min : limited.clamp.max) = static_cast<float>(values.front());
    return add_channel_scaling(builder, op, input, output, limited);
  }
  REEF_ASSIGN_OR_RETURN(const std::int32_t difference, new_difference(builder, op, input));
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, new_result(builder, op, input));
  const float sign = maximum ? 1.0f : -1.0f;
  ChannelScaling away{{sign}, {}, {kHighest, 0}}, back{{sign}, {}, whole_range(builder.tensor(output))};
  for (const std::int32_t value : values) {
    away.biases.push_back(-value);
    back.biases.push_back(maximum ? value : -value);
  }
  REEF_RETURN_IF_ERROR(add_channel_scaling(builder, op, input, difference, away));
  return add_channel_scaling(builder, op, difference, output, back);
}

// x: the operand that is not the constant c.
Status with_constant_tensor(Builder& builder, std::int32_t op, std::int32_t x, std::int32_t c) {
  const std::int32_t sign = is_maximum(builder, op) ? 1 : -1;
  Sum away;
  away.a = x;
  away.b = c;
  away.a_weight = sign;
  away.b_weight = -sign;
  away.clamp = {kHighest, 0};
  REEF_ASSIGN_OR_RETURN(away.output, new_difference(builder, op, x));
  Sum back;
  back.a = c;
  back.b = away.output;
  back.b_weight = sign;
  REEF_ASSIGN_OR_RETURN(back.output, new_result(builder, op, x));
  const TiledTensor& out = builder.tensor(back.output);
  back.offset = -out.zero_point;
  back.clamp = whole_range(out);
  back.output_zero = out.zero_point;
  add_sum_step(builder, op, away);
  add_sum_step(builder, op, back);
  return ok_status();
}

Status of_computed(Builder& builder, std::int32_t op, const Operands& operands) {
  const std::int32_t to = builder.op(op).outputs[0];
  // The difference, in steps of twice the scale.
  constexpr std::int32_t kDifferenceZero = 128;
  Sum half;
  half.a = operands.b;
  half.b = operands.a;
  REEF_ASSIGN_OR_RETURN(half.output, builder.new_like(to, half.a));
  const float scale = builder.tensor(half.a).scale;
  half.a_weight = 1;
  half.b_weight = -1;
  half.multiplier = (1.0f / (2.0f * scale)) * scale;
  const numeric::ChipClamp whole = numeric::chip_clamp(2.0f * scale, kDifferenceZero, numeric::ChipActivation::kNone);
  half.clamp = is_maximum(builder, op) ? numeric::ChipClamp{0, whole.min} : numeric::ChipClamp{whole.max, 0};
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
  result.clamp = whole_range(out);
  result.output_zero = out.zero_point;
  add_sum_step(builder, op, half);
  add_sum_step(builder, op, result);
  return ok_status();
}

}  // namespace

Status lower_extreme(Builder& builder, std::int32_t op) {
  const std::int32_t to = builder.op(op).outputs[0];
  for (std::size_t k = 0; k < 2; ++k) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.operand(op, k));
    REEF_ASSIGN_OR_RETURN(const bool same, same_quantization(builder.source(tensor), builder.source(to)));
    if (!same) return unsupported("operands and result are quantized differently");
  }
  REEF_ASSIGN_OR_RETURN(const std::optional<OneConstant> one, one_constant(builder, op));
  if (one) return with_one_constant(builder, op, *one);
  const bool constant[] = {is_constant(builder, builder.op(op).inputs[0]),
                           is_constant(builder, builder.op(op).inputs[1])};
  REEF_ASSIGN_OR_RETURN(const Operands operands, spread_operands(builder, op));
  if (constant[1]) return with_constant_tensor(builder, op, operands.a, operands.b);
  if (constant[0]) return with_constant_tensor(builder, op, operands.b, operands.a);
  return of_computed(builder, op, operands);
}

}  // namespace reef::lower

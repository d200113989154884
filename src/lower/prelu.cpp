// SPDX-License-Identifier: Apache-2.0
// PRELU with constant slopes: the positive part and the negative part times the slope, each rounded, then added.
//
// How it is known: as Google's compiler does it (docs/hardware/google_programs.md#prelu); 798 of 798 instructions of a
// network regenerated.

#include "lower/constants.h"
#include "lower/elementwise.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"

namespace reef::lower {

Status lower_prelu(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  REEF_ASSIGN_OR_RETURN(const auto slopes, constant_operand(builder, op, 1));
  if (!slopes) return unsupported("a slope that is computed is not generated");
  REEF_ASSIGN_OR_RETURN(const std::int32_t input, with_channels(builder, from, slopes->values.size()));
  const std::int32_t to = builder.op(op).outputs[0];
  // Three tensors quantized as the result, and one as the operand.
  REEF_ASSIGN_OR_RETURN(const std::int32_t positive, builder.new_like(to, input));
  REEF_ASSIGN_OR_RETURN(const std::int32_t below, builder.new_like(from, input));
  REEF_ASSIGN_OR_RETURN(const std::int32_t negative, builder.new_like(to, input));
  REEF_ASSIGN_OR_RETURN(const std::int32_t output, builder.new_like(to, input));
  const tiled::TiledTensor &x = builder.tensor(input), &y = builder.tensor(output);
  const float x_scale = x.scale, y_scale = y.scale;
  const std::int32_t zero = y.zero_point;
  const numeric::ChipClamp of_x = numeric::chip_clamp(x_scale, x.zero_point, numeric::ChipActivation::kNone);
  const numeric::ChipClamp of_y = numeric::chip_clamp(y_scale, zero, numeric::ChipActivation::kNone);
  ChannelScaling above{{numeric::chip_rescale_multiplier(x_scale, y_scale)}, {0}, {of_y.max, 0}};
  REEF_RETURN_IF_ERROR(add_channel_scaling(builder, op, input, positive, above));
  ChannelScaling limited{{1.0f}, {0}, {0, of_x.min}};
  REEF_RETURN_IF_ERROR(add_channel_scaling(builder, op, input, below, limited));
  ChannelScaling sloped{{}, {0}, of_y};
  for (const std::int32_t slope : slopes->values) {
    sloped.multipliers.push_back(numeric::chip_constant_product_multiplier(x_scale, slopes->scale, slope, y_scale));
  }
  REEF_RETURN_IF_ERROR(add_channel_scaling(builder, op, below, negative, sloped));
  tiled::Sum sum;
  sum.a = positive;
  sum.b = negative;
  sum.output = output;
  sum.offset = -2 * zero;
  sum.multiplier = (1.0f / y_scale) * y_scale;
  sum.clamp = of_y;
  sum.output_zero = zero;
  add_sum_step(builder, op, sum);
  builder.set_value(to, {output, {}});
  return ok_status();
}

}  // namespace reef::lower

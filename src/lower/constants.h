// SPDX-License-Identifier: Apache-2.0
// Sums and products with constants: one number, or one per channel.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "lower/builder.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {

// Numbers minus their zero point. One, or as many as the last dimension of the operator's result has elements.
struct ConstantOperand {
  std::vector<std::int32_t> values;
  float scale = 1;
};
// Operand `k` of an operator; nullopt: it is computed. Fails for constants of other shapes than these two.
Result<std::optional<ConstantOperand>> constant_operand(const Builder& builder, std::int32_t op, std::size_t k);

// (x - input zero + bias) * multiplier -> clamp -> + output zero, each of both by channel: one number for all, or one
// per channel.
struct ChannelScaling {
  std::vector<float> multipliers;
  std::vector<std::int32_t> biases;
  numeric::ChipClamp clamp;
};
// Adds the step; tensors of any spread. `output` lies over the tiles as `input` does.
Status add_channel_scaling(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                           const ChannelScaling& scaling);

// A tensor's elements in a layout whose pixels have `numbers` channels (any, if that is 1): that in which it is, or
// else one in which its last dimension is the channels.
Result<std::int32_t> with_channels(Builder& builder, std::int32_t source, std::size_t numbers);

// The constant operand of an operator whose other operand is computed and has the shape of the result: one number, or
// one per channel. Nothing: it has none like that.
struct OneConstant {
  ConstantOperand constant;
  std::int32_t computed = -1;  // the other operand, of the model
  bool is_first = false;       // the constant is operand 0
};
Result<std::optional<OneConstant>> one_constant(const Builder& builder, std::int32_t op);

// Adds a step that copies an image and puts the zero point into the bytes behind the channels of each pixel. Both are
// on the grid and quantized alike.
void add_clean_copy(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output);

// ADD, SUB and MUL of a computed operand and one_constant. False: there is none.
Result<bool> lower_with_constant(Builder& builder, std::int32_t op);

}  // namespace reef::lower

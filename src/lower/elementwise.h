// SPDX-License-Identifier: Apache-2.0
// What the lowerings of element-wise operators share.
#pragma once

#include <cstdint>

#include "lower/builder.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {

// The fused activation of an operator (attribute fused_activation_function).
Result<numeric::ChipActivation> fused_activation(const ir::Operator& op);

// The tensor that holds a value, in whatever way it is spread over the tiles, without padding around it. Fails where
// its scale is not a positive number.
Result<std::int32_t> elements_of(Builder& builder, std::int32_t source);

// The operator's two operands, computed or constants, spread over the tiles in the same way, with all elements of the
// result: steps are added that repeat elements where they have fewer (lower/broadcast.cpp).
struct Operands {
  std::int32_t a = 0, b = 0;  // TiledProgram::tensors
};
Result<Operands> spread_operands(Builder& builder, std::int32_t op);

// The image that the result of an element-wise operator (a tensor of the model) is computed as. A single long row,
// which four tiles would share, is folded: element by element the shape does not matter.
Result<Image> result_image(const Builder& builder, std::int32_t to);

// Adds a step that repeats one pixel for all pixels of `output`, or one channel for all channels of each pixel. Returns
// `output`.
std::int32_t add_repetition(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output);

// The finish function of element-wise steps: the identity, and the input's memory where it can be taken.
Status finish_elementwise(Builder& builder, tiled::Step& step);

// Adds a step for `op` whose output is a new tensor, the value of the operator's first result.
Status add_elementwise(Builder& builder, std::int32_t op, tiled::Elementwise work);

// Bytes as they are; the identity is the finish function's.
tiled::Elementwise copy_of(std::int32_t from, std::int32_t to);

// Adds a step that copies pixels: those that each tile owns of `to`, which has them of `from` as well.
void add_copy(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to);

// For `finish` functions: a copy of the tensor, without halo, made directly before the step that is being finished.
// Each tile has the pixels that it has of `owner`.
std::int32_t insert_copy_without_halo(Builder& builder, std::int32_t op, std::int32_t tensor, std::int32_t owner);

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
// What lowerings offer to others, by the file that has it.
#pragma once

#include "formats/darwinn/parameters/layer_parameters.h"
#include "lower/attention_plan.h"
#include "lower/builder.h"
#include "tiled/pool.h"

namespace reef::lower {

// ---- attention.cpp ----

// One of the operators that `attention` names.
Status lower_attention(Builder& builder, std::int32_t op, const Attention& attention);

// SOFTMAX of the pixels of a tensor on the grid, whatever the order of its elements (softmax.cpp).
Status lower_softmax_of_pixels(Builder& builder, std::int32_t op, std::int32_t input);

// ---- constant_tensor.cpp ----

// Whether the model's tensor is a constant.
bool is_constant(const Builder& builder, std::int32_t source);

// Adds the steps that make the constant, all elements in their order, as a vector (TiledProgram::tensors). Fails for
// other types than 8 bits.
Result<std::int32_t> constant_vector(Builder& builder, std::int32_t op, std::int32_t source);

// ---- fully_connected.cpp ----

// A layer whose every output depends on every input: FULLY_CONNECTED of one row, or a convolution of one pixel.
Status lower_dense(Builder& builder, std::int32_t op);

// A layer of zeros and ones that moves bytes (selection_matrix.h), from a tensor of any layout to a vector with the
// same quantization; both TiledProgram's. `op`: whose step it is.
void add_selection(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output,
                   const darwinn::LayerParameters& layer);

// ---- pad.cpp ----

// A tensor with the padding of `value`, which is that of the model's tensor `source`; adds the steps that make it.
Result<std::int32_t> make_padding_real(Builder& builder, std::int32_t source, const Value& value);

// The zero point around an image (both TiledProgram's tensors), for the given step's operator. `source`: a tensor of
// the model with the image's quantization.
Result<std::int32_t> pad_image(Builder& builder, std::int32_t op, std::int32_t source, std::int32_t image,
                               const Padding& padding);

// ---- pixel_numbers.cpp ----

// ADD, SUB, SQUARED_DIFFERENCE and MUL of two computed operands of which one has the result's shape and the other one
// element in the place of its last dimension. False: these are other operands, and nothing was added.
Result<bool> lower_with_pixel_numbers(Builder& builder, std::int32_t op);

// Adds the step: `output` is on the grid and has one channel for each pixel of `input`, which is on the grid, too.
Status add_channel_sums(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output, float multiplier,
                        const numeric::ChipClamp& clamp);

// ---- pool.cpp ----

// A maximum under windows that stay inside of the image, between tensors on the grid (TiledProgram::tensors).
tiled::Pool plain_pool(const Builder& builder, std::int32_t input, std::int32_t output, const Windows& windows);

// Adds the step for an operator. The pool's tensors, windows and numbers must be filled in, and its image.
void add_pool(Builder& builder, std::int32_t op, const tiled::Pool& pool);

// ---- reflow.cpp ----

// Adds the steps for an operator that only changes the shape of tensor `from`, which becomes `to` (both the model's).
// False: nothing was added, because this is no such case, or one that is not known or does not fit.
Result<bool> reflow_to_vector(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to);

// ---- reshape.cpp ----

// The operator's result has the elements of its operand, in the same order, as the same bytes.
bool keeps_elements(const Builder& builder, const ir::Operator& op);

// ---- sum.cpp ----

// The numbers of ADD, SUB or SQUARED_DIFFERENCE of tensors that are quantized like these.
Result<tiled::WeightedSum> weighted_sum(const ir::Operator& op, const tiled::TiledTensor& a,
                                        const tiled::TiledTensor& b, const tiled::TiledTensor& out);

// Adds the step, for an operator that is made of weighted sums. All tensors lie over the tiles in the same way.
void add_sum_step(Builder& builder, std::int32_t op, const tiled::Sum& sum);

// A new tensor for the operator's result, spread over the tiles as `like` is.
Result<std::int32_t> new_result(Builder& builder, std::int32_t op, std::int32_t like);

}  // namespace reef::lower

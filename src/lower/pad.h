// SPDX-License-Identifier: Apache-2.0
// Padding that is only seen by readers through windows, made a tensor for all others.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// A tensor with the padding of `value`, which is that of the model's tensor `source`; adds the steps that make it.
Result<std::int32_t> make_padding_real(Builder& builder, std::int32_t source, const Value& value);

// The zero point around an image (both TiledProgram's tensors), for the given step's operator. `source`: a tensor of
// the model with the image's quantization.
Result<std::int32_t> pad_image(Builder& builder, std::int32_t op, std::int32_t source, std::int32_t image,
                               const Padding& padding);

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
// Operators of an image and one number for each of its pixels, and sums over the channels of pixels.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// ADD, SUB, SQUARED_DIFFERENCE and MUL of two computed operands of which one has the result's shape and the other one
// element in the place of its last dimension. False: these are other operands, and nothing was added.
Result<bool> lower_with_pixel_numbers(Builder& builder, std::int32_t op);

// Adds the step: `output` is on the grid and has one channel for each pixel of `input`, which is on the grid, too.
Status add_channel_sums(Builder& builder, std::int32_t op, std::int32_t input, std::int32_t output, float multiplier,
                        const numeric::ChipClamp& clamp);

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
// Averages over whole images.
#pragma once

#include "lower/builder.h"
#include "numeric/chip_requantize.h"

namespace reef::lower {

// Adds the steps that average all pixels of the operator's image into its result, a vector.
Status add_global_pool(Builder& builder, std::int32_t op, std::int32_t stride, numeric::ChipActivation activation);

// Adds the steps that sum up all pixels of `input`, an image on the grid, channel by channel, into the operator's
// result: (sum of (x - zero point)) * multiplier -> clamp -> + zero point.
struct PixelTotal {
  std::int32_t op = 0, input = 0;
  float multiplier = 1;
  numeric::ChipClamp clamp;
};
Status add_pixel_total(Builder& builder, const PixelTotal& total);

}  // namespace reef::lower

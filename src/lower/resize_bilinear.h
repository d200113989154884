// SPDX-License-Identifier: Apache-2.0
// Bilinear interpolation by any factor whose weights 8 bits can hold.
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// How pixels of two images of different sizes lie above each other; at most one of both.
struct PixelGrid {
  bool align_corners = false;  // first and last pixels coincide
  bool half_pixels = false;    // positions are those of the pixels' centers
};

// Makes the model's image `to` of `from`, which has the same channels and quantization.
Status interpolate(Builder& builder, std::int32_t op, std::int32_t from, std::int32_t to, const PixelGrid& grid);

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
// An image enlarged by two along both axes.
#pragma once

#include <cstdint>

#include "tiled/memory.h"

namespace reef::tiled {

inline constexpr std::int32_t kResampleFactor = 2;

// The input has a halo of one pixel all around what a tile owns, with the border of the image repeated outside of it.
struct Resample {
  std::int32_t input = kNowhere, output = kNowhere;  // TiledProgram::tensors, kGrid
  bool bilinear = false;
  bool half_pixels = false;  // positions are those of the pixels' centers
};

}  // namespace reef::tiled

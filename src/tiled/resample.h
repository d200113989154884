// SPDX-License-Identifier: Apache-2.0
// An image enlarged by two along both axes.
#pragma once

#include <cstdint>

#include "tiled/axis_partition.h"
#include "tiled/memory.h"

namespace reef::tiled {

inline constexpr std::int32_t kResampleFactor = 2;

// All pixels that the instruction can touch: one before and one behind.
constexpr Window resample_window(std::int32_t outputs) {
  return {.outputs = outputs, .kernel = 2, .stride = 2, .pad_before = 1, .enlarged = 2 * kResampleFactor};
}

// The input has a halo of one pixel all around what a tile owns, with the border of the image repeated outside of it.
struct Resample {
  std::int32_t input = kNowhere, output = kNowhere;  // TiledProgram::tensors, kGrid
  bool bilinear = false;
  bool half_pixels = false;  // positions are those of the pixels' centers
};

}  // namespace reef::tiled

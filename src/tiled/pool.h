// SPDX-License-Identifier: Apache-2.0
// The average or the maximum of the pixels under a window, channel by channel.
#pragma once

#include <cstdint>
#include <optional>

#include "chip/machine.h"
#include "numeric/chip_requantize.h"
#include "tiled/axis_partition.h"
#include "tiled/memory.h"

namespace reef::tiled {

inline constexpr std::int32_t kPoolLinePixels = 4;  // neighbours in x that a line holds, of 64 channels

inline constexpr std::int32_t kPixelFactorBytes = 8;

// Pixels are parameters: moved to wide memory, they stand there as one channel per cell. Windows that reach over the
// border of the image leave out what lies outside, and averages are of what lies inside.
//
// Done in rounds of so many groups of 64 channels and so many rows of the result, as fit into `lines`.
struct Pool {
  bool is_average = false;
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, kGrid
  Window y, x;
  std::int32_t image_height = 0, image_width = 0;  // padding that is part of the image (of a PAD before) included
  std::int32_t image_top = 0, image_left = 0;      // its first row and column: 0 or negative
  std::int32_t input_zero = 0, output_zero = 0;
  float input_scale = 1, output_scale = 1;
  numeric::ChipPoolOrder order = numeric::ChipPoolOrder::kCountLast;
  numeric::ChipClamp clamp;
  // Averages: what sums are multiplied by, instead of what the scales and the number of pixels make of it.
  std::optional<float> multiplier = std::nullopt;
  // Averages of single pixels: TiledProgram::narrow, a factor of 16 bits for each pixel that a tile owns of the result,
  // kPixelFactorBytes apart, instead of 1. kNowhere: none.
  std::int32_t factors = kNowhere;
  std::int32_t groups_at_once = 1, rows_at_once = 1;
  std::int32_t lines = kNowhere;  // TiledProgram::wide
  // TiledProgram::narrow, averages: words of 1 that pixels are multiplied by, as many as pixels of the result or one
  // for all of them.
  std::int32_t ones = kNowhere, one_words = 1;
};

}  // namespace reef::tiled

// SPDX-License-Identifier: Apache-2.0
// Normalizations of each pixel: sums over its channels, and an image combined with one number for each of its pixels.
#pragma once

#include <cstdint>

#include "numeric/chip_requantize.h"
#include "tiled/memory.h"
#include "tiled/sum.h"

namespace reef::tiled {

// Sum over the channels of each pixel of (x - input_zero), times multiplier -> clamp -> + output_zero. All four bytes
// of a pixel's word of the result hold the number. The channels must be whole words.
inline constexpr std::int32_t kChannelSumWords = 4;  // of the line of ones
struct ChannelSums {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, kGrid; the output has one channel
  std::int32_t input_zero = 0, output_zero = 0;
  float multiplier = 1;
  numeric::ChipClamp clamp;
  std::int32_t words = kNowhere;  // TiledProgram::narrow: the line of ones in the making
  std::int32_t line = kNowhere;   // TiledProgram::wide
};

// An image and one number for each of its pixels, which all channels of the pixel are combined with:
//   product   (x - input_zero) * (number - number_zero) * multiplier -> clamp -> + output_zero
//   sum       a WeightedSum whose a is the image and whose b is the number. All four bytes of a number's word must hold
//             it.
// Done in rounds of some groups of 64 channels and some rows of a tile, as many as `lines` hold.
struct PixelNumbers {
  std::int32_t input = 0, numbers = 0, output = 0;  // TiledProgram::tensors, kGrid
  bool is_product = false;
  std::int32_t input_zero = 0, number_zero = 0;  // products
  WeightedSum sum;                               // products use its multiplier, clamp and output_zero
  std::int32_t groups_at_once = 1, rows_at_once = 1;
  std::int32_t weights = kNowhere;  // TiledProgram::narrow: a word, sums only
  std::int32_t lines = kNowhere;    // TiledProgram::wide

  // Operands that become parameters: the image; with sums also the numbers.
  std::int32_t terms() const { return is_product ? 1 : 2; }
};

}  // namespace reef::tiled

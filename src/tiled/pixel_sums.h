// SPDX-License-Identifier: Apache-2.0
// The average of a whole image, channel by channel, by sums: each tile adds up the pixels it owns, the sums are brought
// together (RingCopies), and every tile computes the averages of all channels.
#pragma once

#include <cstdint>

#include "numeric/chip_requantize.h"
#include "tiled/tensor.h"

namespace reef::tiled {

// Sums of bytes in 16 bits: of at most so many pixels.
inline constexpr std::int32_t kMostSummedPixels = 65535 / 255;

// Rows of pixels of a tile that make one sum: as many as possible, such that all sums are of equally many.
inline std::int32_t rows_per_sum(std::int32_t height, std::int32_t width) {
  for (std::int32_t rows = height; rows > 1; --rows) {
    if (height % rows == 0 && rows * width <= kMostSummedPixels) return rows;
  }
  return 1;
}
// Of a tile. 0: it owns no pixels.
inline std::int32_t sums_of(const TiledTensor& image, int tile) {
  const std::int32_t height = image.rows.tile(chip::tile_row(tile)).own();
  const std::int32_t width = image.columns.tile(chip::tile_column(tile)).own();
  return height == 0 || width == 0 ? 0 : height / rows_per_sum(height, width);
}
// Words of the sums of all channels.
inline std::int32_t sum_words(const TiledTensor& image) { return 2 * image.pixel_words(); }

struct PixelSums {
  std::int32_t input = 0;         // TiledProgram::tensors, kGrid
  std::int32_t sums = kNowhere;   // TiledProgram::narrow: sums of a tile, one after the other, sum_words each
  std::int32_t one = kNowhere;    // TiledProgram::narrow: a word
  std::int32_t lines = kNowhere;  // TiledProgram::wide: two rows of pixels of the widest tile, four pixels to a line
};

struct SummedPool {
  std::int32_t input = 0;            // TiledProgram::tensors: the image, for its sizes
  std::int32_t output = 0;           // TiledProgram::tensors, kCopies
  std::int32_t sums = 0;             // how many
  std::int32_t gathered = kNowhere;  // TiledProgram::narrow: all sums
  std::int32_t one = kNowhere;       // TiledProgram::narrow: as in PixelSums
  std::int32_t lines = kNowhere;     // TiledProgram::wide: two times a line for two sums
  std::int32_t offset = 0;           // added to the sum of all bytes
  float multiplier = 1;
  numeric::ChipClamp clamp;

  std::int32_t group_lines() const { return (sums + 1) / 2; }
};

}  // namespace reef::tiled

// SPDX-License-Identifier: Apache-2.0
// The product of two tensors, element by element.
#pragma once

#include <cstdint>

#include "numeric/chip_requantize.h"
#include "tiled/elementwise.h"
#include "tiled/memory.h"

namespace reef::tiled {

// (a - a_zero) * (b - b_zero) * multiplier -> clamp -> + output_zero. All tensors have the same elements on the same
// tiles; where they lie in a tile may differ.
//
// b becomes parameters: each word of four channels is spread to a diagonal matrix of four words, which multiplies a
// word of a. Done in rounds of some words of channels, as many as `spread` holds for all pixels of a tile.
inline constexpr std::int32_t kSpreadWords = 4;        // that a word becomes
inline constexpr std::int32_t kSpreaderWords = 16;     // of the line that does it
inline constexpr std::int32_t kMostProductBlock = 16;  // matrices that are handed over at a time
inline constexpr std::int32_t kOneByOneLines = 8;
struct Product {
  std::int32_t a = 0, b = 0, output = 0;  // TiledProgram::tensors
  std::int32_t a_zero = 0, b_zero = 0, output_zero = 0;
  float multiplier = 1;
  numeric::ChipClamp clamp;
  // As Google's compiler does it: one product at a time, each a word of `spread`, which are packed then.
  bool one_by_one = false;
  Identity identity;                       // for packing
  std::int32_t words_at_once = 1;          // of a pixel's channels
  std::int32_t spread = kNowhere;          // TiledProgram::narrow
  std::int32_t spreader_words = kNowhere;  // TiledProgram::narrow: the spreading line in the making
  std::int32_t spreader = kNowhere;        // TiledProgram::wide: one line
  std::int32_t matrices = kNowhere;        // TiledProgram::wide: two blocks of lines (kOneByOneLines if one by one)
};

}  // namespace reef::tiled

// SPDX-License-Identifier: Apache-2.0
// Roots of sums of squares.
#pragma once

#include <cstdint>

#include "tiled/memory.h"

namespace reef::tiled {

// For each pixel that a tile owns of an image, one over the root of the sum of squares of its channels, in two parts of
// 16 bits of which one is 0:
//   fine     kFineRoot / root, where the sum is kRootSplit or more (numeric/chip_squares.h)
//   coarse   kCoarseRoot / root, where it is less
// Bytes behind the channels of a pixel must hold the zero point.
inline constexpr std::int32_t kRootLines = 2, kRootSelectorWords = 4;
struct PixelRoots {
  std::int32_t input = 0;  // TiledProgram::tensors, kGrid
  std::int32_t input_zero = 0;
  // TiledProgram::narrow: of each owned pixel kPixelFactorBytes, of which 2 count
  std::int32_t fine = kNowhere, coarse = kNowhere;  // results
  std::int32_t scratch = kNowhere;                  // twice as much
  std::int32_t limit_offset = 0;                    // bytes, of the second half
  std::int32_t selector_words = kNowhere;           // TiledProgram::narrow: kRootSelectorWords
  std::int32_t selector = kNowhere;                 // TiledProgram::wide: a line
  std::int32_t lines = kNowhere;                    // TiledProgram::wide: kRootLines
};

}  // namespace reef::tiled

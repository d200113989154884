// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of rows that lie in the tiles as a whole: of each pixel that a tile owns.
#pragma once

#include <cstdint>

#include "tiled/elementwise.h"
#include "tiled/memory.h"

namespace reef::tiled {

struct Softmax {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, spread over the tiles in the same way
  TileMask tiles = 0;                  // that compute: those that own pixels, or one that has a copy
  float scale = 1;                     // of differences between inputs, in the exponent
  std::int32_t words = kNowhere;       // TiledProgram::narrow: SoftmaxWords
  std::int32_t numerators = kNowhere;  // TiledProgram::narrow: 16 bits each, NumeratorLines for each pixel
  std::int32_t lines = kNowhere;       // TiledProgram::wide: those of two pixels' numerators, and one of constants
  Identity identity;
};

// Small things, in bytes from the object's start: a mask for the last word of a row; for each pixel the maximum with
// zeros behind it, the root and the inverse of the sum.
struct SoftmaxWords {
  std::int64_t maxima, roots, inverses, bytes;
  static constexpr std::int64_t kMaximum = 16, kRoot = 8;

  static SoftmaxWords of(std::int64_t pixels) {
    constexpr std::int64_t kMask = 16;
    const std::int64_t roots = kMask + kMaximum * pixels, inverses = roots + kRoot * pixels;
    return {kMask, roots, inverses, inverses + kRoot * pixels};
  }
};

// How numerators of a pixel lie in lines of wide memory for the last product: `lines` lines of 2 * half words, where
// the words of the first half and of the second half of a line's numerators are put side by side.
struct NumeratorLines {
  std::int32_t half = 2;   // words, even
  std::int32_t lines = 1;  // of 2 * half words

  static NumeratorLines of(std::int32_t elements) {
    constexpr std::int32_t kMostHalf = chip::kWideLineBytes / chip::kNarrowWordBytes / 2;
    const std::int32_t words = (elements + 3) / 4;  // of inputs; numerators take twice as many
    NumeratorLines result;
    result.lines = (words + kMostHalf - 1) / kMostHalf;
    result.half = ((words + result.lines - 1) / result.lines + 1) / 2 * 2;
    return result;
  }
  std::int64_t bytes() const { return std::int64_t{lines} * 2 * half * chip::kNarrowWordBytes; }
  std::int64_t result_bytes() const { return bytes() / 2; }  // that are computed: a row, and a little behind it
  // Results of half a line at a time; the last of them may be behind the row's end in part, and are then not stored.
  // False: more than those, so that there must be room.
  bool ends_with_row(std::int32_t elements) const {
    return result_bytes() - (elements + 3) / 4 * chip::kNarrowWordBytes < 2 * half || lines == 1;
  }
};

}  // namespace reef::tiled

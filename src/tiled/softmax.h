// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of one row, all of it in one tile.
#pragma once

#include <cstdint>

#include "tiled/elementwise.h"
#include "tiled/memory.h"

namespace reef::tiled {

struct Softmax {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, of one pixel; both in `tile`
  int tile = 0;
  float scale = 1;                     // of differences between inputs, in the exponent
  std::int32_t words = kNowhere;       // TiledProgram::narrow: kSoftmaxWords
  std::int32_t numerators = kNowhere;  // TiledProgram::narrow: 16 bits each
  std::int32_t lines = kNowhere;       // TiledProgram::wide: kSoftmaxLines, then those of the numerators
  Identity identity;
};

// Of a mask for the last word of a row (4), of the maximum and zeros behind it (4), of the root (2) and the inverse (2)
// of the sum.
inline constexpr std::int32_t kSoftmaxWords = 12;
// Two in turn for what is reduced, and one of constants.
inline constexpr std::int32_t kSoftmaxLines = 3;

// How numerators lie in lines of wide memory for the last product: `lines` lines of 2 * half words, where the words of
// the first half and of the second half of a line's numerators are put side by side.
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
  std::int64_t numerator_bytes() const { return std::int64_t{lines} * 2 * half * chip::kNarrowWordBytes; }
  std::int64_t result_bytes() const { return numerator_bytes() / 2; }
};

}  // namespace reef::tiled

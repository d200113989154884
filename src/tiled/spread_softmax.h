// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of one row as Google's newest compiler does it: a row of more than 64 elements on all tiles that have a part
// of it, a row of four on one.
#pragma once

#include <cstdint>

#include "tiled/elementwise.h"
#include "tiled/memory.h"

namespace reef::tiled {

// A row of 64 elements to a tile. Objects are used for one thing after the other, at fixed places.
struct SpreadSoftmax {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors, kVector of 64 elements to a tile
  std::int32_t elements = 0;
  float scale = 1;  // of differences between inputs, in the exponent
  // TiledProgram::parameters, a line for each word of the row (the second, for what follows the first, is its copy):
  // biases that make the elements behind the row's end vanish, scales that do, and one line for the last numerator.
  std::int32_t biases = kNowhere, biases_again = kNowhere, scales = kNowhere, last_numerator = kNowhere;
  std::int32_t row = kNowhere;          // TiledProgram::narrow: all elements, all numerators, and words behind them
  std::int32_t differences = kNowhere;  // TiledProgram::narrow: kDifferenceBytes
  std::int32_t lines = kNowhere;        // TiledProgram::wide: kSpreadSoftmaxLines
  Identity identity;

  std::int32_t words() const { return (elements + 3) / 4; }
  std::int32_t tiles() const { return (elements + kElementsPerTile - 1) / kElementsPerTile; }
  std::int32_t words_of(int tile) const { return tile + 1 < tiles() ? kWordsPerTile : words() - kWordsPerTile * tile; }
  // Words of 16-bit numerators; of a word with none of the row the second half is no numerator.
  std::int32_t numerator_words() const { return 2 * words() - (elements % 4 == 1 || elements % 4 == 2 ? 1 : 0); }

  static constexpr std::int32_t kElementsPerTile = 64, kWordsPerTile = 16;
  static constexpr std::int32_t kNumerators = 128;  // bytes of the row before all numerators: those of the tile itself
  static constexpr std::int32_t kWordsBehind = 16;  // of the row, behind all numerators
};

// Differences to the maximum, a result that nobody reads, eight words of constants.
inline constexpr std::int32_t kDifferenceBytes = 160;
inline constexpr std::int32_t kUnusedResult = 64, kDifferenceWords = 128;  // bytes from the start

// Lines, from the first one of the object.
inline constexpr std::int32_t kSpreadSoftmaxLines = 40;
struct SpreadSoftmaxLines {
  static constexpr std::int32_t kGather = 0, kBroadcast = 26, kAllToAll = 34;  // of copies over the ring, six each
  static constexpr std::int32_t kReduced = 32;                                 // eight
  static constexpr std::int32_t kReplicate = 33, kNegated = 35, kPair = 38;
};

// A row of four elements in one tile.
struct SmallSoftmax {
  std::int32_t input = 0, output = 0;  // TiledProgram::tensors
  float scale = 1;
  std::int32_t words = kNowhere;  // TiledProgram::narrow: kSmallSoftmaxBytes
  std::int32_t lines = kNowhere;  // TiledProgram::wide: kSmallSoftmaxLines
  Identity identity;
};
inline constexpr std::int32_t kSmallSoftmaxBytes = 64, kSmallSoftmaxLines = 8;
struct SmallSoftmaxLines {
  static constexpr std::int32_t kReduced = 0, kNegated = 3, kPair = 6, kReplicate = 7;
};

}  // namespace reef::tiled

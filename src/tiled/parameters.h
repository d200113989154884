// SPDX-License-Identifier: Apache-2.0
// Parameters that steps use: kept in the tiles between inferences, or sent with each one.
//
// Three ways, which schedule chooses among:
//   cached     on some tiles, put there once; a step sends them from there to all that need them
//   fetched    the host sends them before each use, to the lines of one tile, where the step finds them as if cached
//   streamed   the host sends them with each use, to all tiles at once; they are kept nowhere. Only for chunks whose
//              lines are as the steps use them
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "tiled/memory.h"

namespace reef::tiled {

// Lines of a chunk on one tile.
struct ParameterPiece {
  int tile = 0;
  std::int32_t line = 0, lines = 0;
  friend bool operator==(const ParameterPiece&, const ParameterPiece&) = default;
};

struct ParameterChunk {
  Bytes bytes;                   // formats/darwinn/parameters: whole units of 64 bytes
  std::int32_t line_words = 64;  // words of 4 bytes that go into one wide line
  std::int32_t lines = 0;        // lines of wide memory it takes
  // Packed lines (depthwise layers) cannot be cut in two.
  bool in_one_piece = false;
  // Only this tile can use them: weights of a fully connected layer. kNowhere: any tile may keep them, the ring brings
  // them to all.
  int tile = kNowhere;

  bool can_stream = false;

  // Schedule's: where they are kept, or where they are brought before each use, in order. Empty: streamed.
  std::vector<ParameterPiece> at;
  std::int32_t landing = kNowhere;  // TiledProgram::wide: the lines they are brought to
  bool is_streamed() const { return at.empty(); }
  bool is_fetched() const { return landing != kNowhere; }
  bool is_cached() const { return !is_streamed() && !is_fetched(); }
};

}  // namespace reef::tiled

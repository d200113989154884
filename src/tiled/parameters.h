// SPDX-License-Identifier: Apache-2.0
// Parameters that steps use: kept in the tiles between inferences, or sent with each one.
//
// Three ways, which schedule chooses among:
//   cached     on some tiles, put there once; a step sends them from there to all that need them
//   fetched    the host sends them before each use, to the lines where the step finds them as if cached: of one tile,
//   or
//              of the tiles that they belong on
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
  // Weights that only the tile that keeps them can use (fully connected layers): in parts of so many lines, of which
  // part t (the last may be shorter) belongs on tile t. 0: any tile may keep any of them, the ring brings them to all.
  std::int32_t part_lines = 0;
  bool parts_at_one_line = true;       // on all of these tiles they begin at the same line
  std::int32_t part_header_lines = 0;  // of part_lines: lines that are no weights, at the beginning
  bool can_stream = false;

  std::int32_t parts() const { return part_lines == 0 ? 0 : (lines + part_lines - 1) / part_lines; }

  // Schedule's: where they are kept, or where they are brought before each use, in order. Empty: streamed.
  std::vector<ParameterPiece> at;
  std::int32_t landing = kNowhere;  // TiledProgram::wide: the lines they are brought to
  bool is_streamed() const { return at.empty(); }
  bool is_fetched() const { return landing != kNowhere; }
  bool is_cached() const { return !is_streamed() && !is_fetched(); }
};

}  // namespace reef::tiled

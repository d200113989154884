// SPDX-License-Identifier: Apache-2.0
// Parameters that steps use: kept in the tiles between inferences, or sent with each one.
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

  // Schedule's: where they are kept, in order. Empty: they come from the host with every use.
  std::vector<ParameterPiece> at;
  bool is_streamed() const { return at.empty(); }
};

}  // namespace reef::tiled

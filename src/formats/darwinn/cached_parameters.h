// SPDX-License-Identifier: Apache-2.0
// Where a parameter-caching program puts each piece of its parameters.
//
// Such a program streams its parameters through one FIFO: pops take them out in order and name the tiles that listen;
// receives in those tiles say which lines of wide memory they go to. Both run in order, so that walking them side by
// side gives every byte its place. Nothing else of the program is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::darwinn {

// Consecutive parameter bytes on consecutive lines of one tile's wide memory.
struct CachedPiece {
  std::uint64_t offset = 0;  // in Executable::parameters
  std::uint64_t bytes = 0;   // the last line may hold fewer than line_bytes
  int tile = 0;
  std::uint32_t first_line = 0;
  std::uint32_t lines = 0;
  std::uint32_t line_bytes = 0;  // parameter bytes on each line; a line takes 256 bytes of memory whatever this is
  friend bool operator==(const CachedPiece&, const CachedPiece&) = default;
};

// In the order of the parameters; a piece sent to several tiles appears once for each. Fails where the program takes
// more parameters than there are, or sends lines to a tile that receives none.
Result<std::vector<CachedPiece>> find_cached_pieces(const Executable& caching_program);

// The piece that holds a line of a tile's wide memory, or nullptr. Where several were written, the last one.
const CachedPiece* piece_at(const std::vector<CachedPiece>& pieces, int tile, std::uint32_t line);

}  // namespace reef::darwinn

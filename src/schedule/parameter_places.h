// SPDX-License-Identifier: Apache-2.0
// On which tiles and lines the parameters of each layer are kept, and which are not kept but sent with every inference.
//
// Parameters lie below all scratch. A convolution's chunk may be cut into pieces on several tiles, which then send one
// after the other; a depthwise chunk stays whole; weights of a fully connected layer belong to one tile.
//
// Where there is room for all, all are kept. Otherwise CacheOrder says who comes first; what does not fit any more is
// passed over.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/status.h"
#include "tiled/program.h"

namespace reef::schedule {

// Whose parameters are kept where there is not room for all (`--cache`).
//   kOfLevel    the level's own order: kMostSaved, or for Level::kAsGoogle the same with the larger chunks before the
//               smaller (the order of Google's compiler, as far as it is known)
//   kFirstUse   in the order of execution
//   kMostSaved  those that can only be used from one place first, then those that cannot be cut, then the others; among
//               equals, those whose sending would cost most bytes for the lines they take
enum class CacheOrder : std::uint8_t { kOfLevel, kFirstUse, kMostSaved };

// What others that share the chip have left.
struct CacheRoom {
  std::array<std::int32_t, chip::kTiles> first_line{};            // on each tile
  std::int32_t end_line = chip::kWideLines;                       // scratch of others begins here
  std::int64_t lines = std::numeric_limits<std::int64_t>::max();  // in all
  CacheOrder order = CacheOrder::kOfLevel;
};

// Chunks without room for them have no place afterwards. Chunks that are fetched (ParameterChunk::landing) get none.
void place_parameters(tiled::TiledProgram& program, const CacheRoom& room = {});

// Places given from outside, by layer: checked for what the program relies on. An empty list: streamed.
Status use_parameter_places(tiled::TiledProgram& program,
                            const std::vector<std::vector<tiled::ParameterPiece>>& places);

// A chunk's parts, each on its own tile, from `line` on.
std::vector<tiled::ParameterPiece> parts_at(const tiled::ParameterChunk& chunk, std::int32_t line);

}  // namespace reef::schedule

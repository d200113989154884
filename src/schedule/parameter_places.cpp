// SPDX-License-Identifier: Apache-2.0
#include "schedule/parameter_places.h"

#include <algorithm>
#include <array>

namespace reef::schedule {
namespace {

using tiled::ParameterChunk;
using tiled::ParameterPiece;
using tiled::TiledProgram;

using Filled = std::array<std::int32_t, chip::kTiles>;  // lines in use, from 0 on

Status place_chunk(ParameterChunk& chunk, std::int32_t capacity, Filled& filled) {
  std::int32_t left = chunk.lines;
  while (left > 0) {
    const auto emptiest = std::min_element(filled.begin(), filled.end());
    const std::int32_t room = capacity - *emptiest;
    const std::int32_t lines = std::min(left, room);
    if (lines <= 0 || (chunk.in_one_piece && lines < left)) {
      return unsupported(
          "parameters do not fit into the chip's memory ({} lines of 256 bytes on each of {} tiles); "
          "sending them with every inference is not generated yet",
          capacity, chip::kTiles);
    }
    chunk.at.push_back({static_cast<int>(emptiest - filled.begin()), *emptiest, lines});
    *emptiest += lines;
    left -= lines;
  }
  return ok_status();
}

}  // namespace

Status place_parameters(TiledProgram& program) {
  Filled filled{};
  for (const bool whole : {true, false}) {
    for (ParameterChunk& chunk : program.parameters) {
      if (chunk.in_one_piece != whole) continue;
      chunk.at.clear();
      REEF_RETURN_IF_ERROR(place_chunk(chunk, program.lowest_scratch_line, filled));
    }
  }
  return ok_status();
}

Status use_parameter_places(TiledProgram& program, const std::vector<std::vector<ParameterPiece>>& places) {
  REEF_REQUIRE(places.size() == program.parameters.size(), "{} places were given for {} chunks", places.size(),
               program.parameters.size());
  std::array<std::vector<bool>, chip::kTiles> used;
  for (auto& lines : used) lines.resize(static_cast<std::size_t>(program.lowest_scratch_line));
  for (std::size_t i = 0; i < places.size(); ++i) {
    std::int64_t lines = 0;
    for (const ParameterPiece& piece : places[i]) {
      REEF_REQUIRE(piece.tile >= 0 && piece.tile < chip::kTiles && piece.line >= 0 && piece.lines > 0 &&
                       std::int64_t{piece.line} + piece.lines <= program.lowest_scratch_line,
                   "chunk {} of parameters lies outside of lines 0 to {}", i, program.lowest_scratch_line);
      auto& tile = used[static_cast<std::size_t>(piece.tile)];
      const auto begin = tile.begin() + piece.line, end = begin + piece.lines;
      REEF_REQUIRE(std::find(begin, end, true) == end, "chunk {} of parameters overlaps others on tile {}", i,
                   piece.tile);
      std::fill(begin, end, true);
      lines += piece.lines;
    }
    ParameterChunk& chunk = program.parameters[i];
    REEF_REQUIRE(lines == chunk.lines, "chunk {} has {} lines of parameters, places are for {}", i, chunk.lines, lines);
    REEF_REQUIRE(!chunk.in_one_piece || places[i].size() == 1, "chunk {} of parameters must be in one piece", i);
    chunk.at = places[i];
  }
  return ok_status();
}

}  // namespace reef::schedule

// SPDX-License-Identifier: Apache-2.0
#include "emit/constant_lines.h"

#include <array>

#include "isa/mesh.h"
#include "isa/movers.h"

namespace reef::emit {
namespace {

namespace m = isa::movers;

void fill(ProgramWriter& writer, Opcode by, std::int32_t word, std::int32_t words, std::uint32_t value, bool signals) {
  namespace m = isa::mesh;
  Draft draft(by);
  draft.tiles(tiled::kAllTiles).nest(m::kOut, LoopNest(word, {{1, words, words > 1}}));
  if (signals) draft.signal(m::producers(by)[1], 1);
  writer.add(draft.set(m::kFill).set(m::kFillValue, value));
}

// By all four units in turn; equal words by one instruction.
void fill_words(ProgramWriter& writer, std::span<const std::uint32_t> words, std::int32_t first_byte) {
  constexpr std::array kUnits = {Opcode::kMeshNorth, Opcode::kMeshEast, Opcode::kMeshWest, Opcode::kMeshSouth};
  const auto count = static_cast<std::int32_t>(words.size());
  std::size_t unit = 0;
  for (std::int32_t at = 0; at < count;) {
    const std::uint32_t value = words[reef::at(at)];
    std::int32_t end = at;
    while (end < count && words[reef::at(end)] == value) ++end;
    fill(writer, kUnits[unit++ % kUnits.size()], first_byte / kWord + at, end - at, value, true);
    at = end;
  }
}

}  // namespace

void make_identity(ProgramWriter& writer, const tiled::TiledProgram& program, const tiled::Identity& identity,
                   bool signals) {
  if (identity.words == tiled::kNowhere) return;
  const std::int32_t word = program.address_of(identity.words) / kWord;
  // Fills of one unit are done in order: the last one stands for all.
  for (int k = 0; k < tiled::kIdentityLineWords; ++k) {
    fill(writer, Opcode::kMeshNorth, word + k, 1, std::uint32_t{1} << (8 * k), k == tiled::kIdentityLineWords - 1);
  }
  const auto filled = [&](int tile) { return writer.total(TileCounter::kMeshSouthIn, tile); };
  for_each_class(tiled::kAllTiles, filled, [&](TileMask tiles, std::int64_t total) {
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tiles)
        .nest(m::kToWideIn, LoopNest(word, {step(1, tiled::kIdentityLineWords)}))
        .nest(m::kToWideOut, LoopNest(program.line_of(identity.line), {{1, 1, false}}))
        .set(m::kToWideLineLevel, 1)
        .wait(TileCounter::kMeshSouthIn, {1, total, 0});
    if (signals) draft.signal(m::kSignalNarrowToWide, 1);
    writer.add(draft);
  });
}

void make_lines(ProgramWriter& writer, std::span<const std::uint32_t> words, std::int32_t line_words,
                std::int32_t first_byte, std::int32_t line) {
  fill_words(writer, words, first_byte);
  const std::int32_t lines = static_cast<std::int32_t>(words.size()) / line_words;
  Draft move(Opcode::kNarrowToWide);
  move.tiles(tiled::kAllTiles)
      .nest(m::kToWideIn, LoopNest(first_byte / kWord, {step(1, line_words), step(line_words, lines)}))
      .nest(m::kToWideOut, LoopNest(line, {step(1, lines)}))
      .set(m::kToWideLineLevel, 1)
      .signal(m::kSignalNarrowToWide, 1);
  for (const TileCounter counter :
       {TileCounter::kMeshNorthIn, TileCounter::kMeshSouthIn, TileCounter::kMeshWestIn, TileCounter::kMeshEastIn}) {
    move.wait(counter, {2, writer.total(counter, 0), 1});
  }
  writer.add(move);
}

}  // namespace reef::emit

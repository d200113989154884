// SPDX-License-Identifier: Apache-2.0
#include "emit/program_writer.h"

#include <gtest/gtest.h>

#include "isa/fence.h"
#include "isa/mesh.h"
#include "isa/ring.h"
#include "isa/scalar.h"

namespace reef::emit {
namespace {

using isa::Opcode;

Draft fill(TileMask tiles, std::int64_t words) {
  Draft draft(Opcode::kMeshNorth);
  draft.tiles(tiles)
      .nest(isa::mesh::kOut, LoopNest(0, {step(1, 4), step(4, words)}))
      .set(isa::mesh::kFill)
      .signal(isa::mesh::producers(Opcode::kMeshNorth)[1], 1);
  return draft;
}

TEST(ProgramWriter, CountsPassesForEachTile) {
  ProgramWriter writer(0);
  writer.add(fill(0x0003, 5));
  writer.add(fill(0x0001, 2));
  EXPECT_EQ(writer.total(TileCounter::kMeshSouthIn, 0), 7);
  EXPECT_EQ(writer.total(TileCounter::kMeshSouthIn, 1), 5);
  EXPECT_EQ(writer.total(TileCounter::kMeshSouthIn, 2), 0);
  writer.tile_fence(kAllUnits, counter_mask(TileCounter::kMeshSouthIn));
  EXPECT_EQ(writer.total(TileCounter::kMeshSouthIn, 0), 0);
}

TEST(ProgramWriter, TurnsOnTheRingAreCountedEverywhere) {
  ProgramWriter writer(0);
  writer.add(Draft(Opcode::kRingSend)
                 .tiles(0x0010)
                 .nest(isa::ring::kSendIn, LoopNest(3, {step(1, 9)}))
                 .set(isa::ring::kChannel, 1)
                 .signal(isa::ring::kSignalRingProducer, 0));
  EXPECT_EQ(writer.total(TileCounter::kRingProducerB, 0), 9);
  EXPECT_EQ(writer.total(TileCounter::kRingProducerB, 15), 9);
  EXPECT_EQ(writer.total(ScalarCounter::kRingProducerB), 9);
  EXPECT_EQ(writer.total(TileCounter::kRingProducerA, 0), 0);
}

TEST(ProgramWriter, NumbersTileInstructionsAndStatesItsLength) {
  ProgramWriter writer(0xffff);
  writer.add(fill(1, 1));
  writer.load_register(4, 7);
  writer.tile_fence(0, 0);
  const auto pieces = std::move(writer).finish();
  ASSERT_TRUE(pieces.ok());
  ASSERT_EQ(pieces->size(), 1u);
  const isa::Program& program = pieces->front().program;
  ASSERT_EQ(program.size(), 5u);
  EXPECT_EQ(program[0].get(isa::control::kStartLength), 128 * (6 + 1 + 1));
  EXPECT_EQ(program[1].get(isa::tile::kSequence), 0xffff);
  EXPECT_EQ(program[3].get(isa::tile_fence::kSequence), 0);
}

TEST(ProgramWriter, LongProgramsAreCutBeforeBarriers) {
  ProgramWriter writer(0);
  for (int i = 0; i < 5; ++i) {
    writer.barrier();
    for (int row = 0; row < 5998; ++row) writer.load_register(4, 7);
    writer.load_address(5, {});
  }
  const auto pieces = std::move(writer).finish();
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  ASSERT_EQ(pieces->size(), 3u);  // 2 + 2 + 1 blocks
  std::size_t sequence = 0;
  for (const ProgramPiece& piece : *pieces) {
    EXPECT_LE(isa::row_count(piece.program) - 2, isa::kMaxContentRows);
    EXPECT_EQ(piece.program.front().opcode(), Opcode::kStart);
    EXPECT_EQ(piece.program[1].opcode(), Opcode::kTileFence);
    EXPECT_EQ(piece.program[1].get(isa::tile_fence::kSequence), sequence);
    EXPECT_EQ(piece.program.back().opcode(), Opcode::kEnd);
    EXPECT_EQ(piece.field_offsets.size(), sequence < 4 ? 2u : 1u);
    // The first address follows the first block's rows.
    EXPECT_EQ(piece.field_offsets[0].bit_offset, 128 * (1 + 3 + 5998) + isa::bundle::kAluOperand.bit);
    sequence += 2;
  }
  EXPECT_EQ((*pieces)[0].program[(*pieces)[0].program.size() - 6].opcode(), Opcode::kHalt);
}

// Back to the first instruction of the pass, unless all are done; and in one piece.
TEST(ProgramWriter, LoopsBranchBack) {
  namespace c = isa::control;
  ProgramWriter writer(0);
  writer.begin_loop(7);
  const std::int64_t first = writer.rows();
  const std::size_t begin = writer.position();
  writer.tile_fence(kAllUnits, kCountersOfTiles);
  writer.barrier();
  writer.end_loop();
  const auto pieces = std::move(writer).finish();
  ASSERT_TRUE(pieces.ok()) << pieces.status().message();
  const isa::Program& program = (*pieces)[0].program;  // begins with its start
  std::int64_t row = 0;
  std::vector<std::int64_t> targets;
  for (const isa::Instruction& instruction : program) {
    if (instruction.opcode() == Opcode::kBranch) targets.push_back(row + instruction.get(c::kBranchOffset));
    row += instruction.rows();
  }
  // The end of the program is behind the loop.
  EXPECT_EQ(targets, (std::vector<std::int64_t>{row - 1, first + 1}));
  EXPECT_EQ(program[begin].get(isa::bundle::kAluOperand), 7);
}

TEST(ProgramWriter, LoopsAreNotCut) {
  ProgramWriter writer(0);
  writer.begin_loop(2);
  for (int i = 0; i < isa::kMaxContentRows / 2; ++i) writer.barrier();
  writer.end_loop();
  EXPECT_FALSE(std::move(writer).finish().ok());
}

TEST(ProgramWriter, APieceWithoutBarrierCannotBeCut) {
  ProgramWriter writer(0);
  for (int row = 0; row < isa::kMaxContentRows + 1; ++row) writer.load_register(4, 7);
  EXPECT_EQ(std::move(writer).finish().status().code(), StatusCode::kUnsupported);
}

TEST(ProgramWriter, ThresholdsWrap) {
  Draft draft = fill(1, 1);
  draft.wait(TileCounter::kAvdata, {1, 65536 + 5, 1}).wait(TileCounter::kAvdata, {1, 40000, 1});
  ASSERT_TRUE(draft.status().ok());
  EXPECT_EQ(draft.instruction().read_watcher(isa::mesh::kWatchers[0]).threshold, 5);
  EXPECT_EQ(draft.instruction().read_watcher(isa::mesh::kWatchers[1]).threshold, 40000 - 65536);
}

TEST(ProgramWriter, WhatDoesNotFitAFieldFails) {
  ProgramWriter writer(0);
  writer.add(Draft(Opcode::kMeshNorth).tiles(1).nest(isa::mesh::kOut, LoopNest(70000, {step(1, 4)})));
  EXPECT_FALSE(std::move(writer).finish().ok());
}

TEST(ProgramWriter, ClassesKeepTheOrderOfTheirFirstTiles) {
  std::vector<std::pair<TileMask, int>> found;
  for_each_class(
      0x00ff, [](int tile) { return tile % 2 == 0 && tile > 0 ? 7 : tile / 4; },
      [&](TileMask tiles, int key) { found.emplace_back(tiles, key); });
  EXPECT_EQ(found, (std::vector<std::pair<TileMask, int>>{{0x000b, 0}, {0x0054, 7}, {0x00a0, 1}}));
}

}  // namespace
}  // namespace reef::emit

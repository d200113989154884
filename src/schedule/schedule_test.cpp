// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule.h"

#include <random>

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "schedule/first_fit.h"
#include "schedule/parameter_places.h"
#include "schedule/spills.h"

namespace reef::schedule {
namespace {

TEST(FirstFit, LargestFirstLowestFree) {
  const std::vector<Extent> extents = {{10, 0, 1}, {30, 1, 2}, {20, 2, 3}, {25, 4, 5}};
  EXPECT_EQ(first_fit(extents), (std::vector<std::int64_t>{30, 0, 30, 0}));
}

TEST(FirstFit, GapsAreUsedAndTiesKeepTheirOrder) {
  const std::vector<Extent> extents = {{8, 0, 9}, {8, 0, 9}, {4, 0, 9}};
  EXPECT_EQ(first_fit(extents), (std::vector<std::int64_t>{0, 8, 16}));
  const std::vector<Extent> gap = {{10, 0, 0}, {9, 0, 1}, {5, 1, 1}};  // what was at 0 is gone in step 1
  EXPECT_EQ(first_fit(gap), (std::vector<std::int64_t>{0, 10, 0}));
}

TEST(FirstFit, NothingOverlaps) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::vector<Extent> extents(1 + random() % 30);
    for (Extent& extent : extents) {
      extent.size = static_cast<std::int64_t>(1 + random() % 50);
      extent.first = static_cast<std::int32_t>(random() % 20);
      extent.last = extent.first + static_cast<std::int32_t>(random() % 6);
    }
    const auto at = first_fit(extents, kFitOrders[round % std::size(kFitOrders)]);
    for (std::size_t i = 0; i < extents.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        const bool together = extents[i].first <= extents[k].last && extents[k].first <= extents[i].last;
        const bool apart = at[i] + extents[i].size <= at[k] || at[k] + extents[k].size <= at[i];
        EXPECT_TRUE(apart || !together);
      }
    }
  }
}

// Places from outside take the place of ours, and only those given.
TEST(Schedule, GivenPlacesAreUsed) {
  tiled::TiledProgram program;
  for (const int bytes : {400, 200}) program.narrow.push_back({.bytes = bytes, .life = {0, 1}});
  program.wide.push_back({.lines = 8, .life = {0, 1}});
  program.tensors.resize(2);
  program.tensors[1].object = 1;
  program.tensors[1].offset = 4;
  program.tensors[0].object = 0;
  ASSERT_TRUE(schedule(program).ok());
  EXPECT_EQ(program.tensors[1].address, 404);
  ScheduleOptions options;
  options.narrow_addresses = {{1, 1000}};
  options.wide_lines = {{0, 100}};
  ASSERT_TRUE(schedule(program, options).ok());
  EXPECT_EQ(program.tensors[0].address, 0);
  EXPECT_EQ(program.tensors[1].address, 1004);
  EXPECT_EQ(program.narrow_bytes, 1200);
  EXPECT_EQ(program.lowest_scratch_line, 100);
  for (const std::int32_t outside : {-4, chip::kNarrowBytes - 100}) {
    options.narrow_addresses = {{1, outside}};
    EXPECT_FALSE(schedule(program, options).ok()) << outside;
  }
  options.narrow_addresses = {{2, 0}};
  EXPECT_FALSE(schedule(program, options).ok()) << "no such object";
}

tiled::TiledProgram chunks(std::initializer_list<std::pair<int, bool>> lines, std::int32_t capacity) {
  tiled::TiledProgram program;
  for (const auto& [count, depthwise] : lines) {
    tiled::ParameterChunk chunk;
    chunk.in_one_piece = depthwise;
    chunk.lines = count;
    program.parameters.push_back(chunk);
  }
  program.lowest_scratch_line = capacity;
  return program;
}

TEST(ParameterPlaces, TheEmptiestTileAndPiecesWhereNoneHoldsAll) {
  tiled::TiledProgram program = chunks({{50, false}, {20, true}, {120, false}}, 60);
  place_parameters(program);
  EXPECT_EQ(program.parameters[1].at, (std::vector<tiled::ParameterPiece>{{0, 0, 20}}));
  EXPECT_EQ(program.parameters[0].at, (std::vector<tiled::ParameterPiece>{{1, 0, 50}}));
  EXPECT_EQ(program.parameters[2].at, (std::vector<tiled::ParameterPiece>{{2, 0, 60}, {3, 0, 60}}));
}

TEST(ParameterPlaces, WhatDoesNotFitIsSentWithEveryUse) {
  tiled::TiledProgram all_full = chunks({{16 * 60 + 1, false}}, 60);
  place_parameters(all_full);
  EXPECT_TRUE(all_full.parameters[0].is_streamed());
  tiled::TiledProgram cannot_be_cut = chunks({{61, true}}, 60);
  place_parameters(cannot_be_cut);
  EXPECT_TRUE(cannot_be_cut.parameters[0].is_streamed());
}

TEST(ParameterPlaces, TheLargestThatFitAreKept) {
  tiled::TiledProgram program = chunks({{300, false}, {900, false}, {700, false}, {10, true}}, 60);
  place_parameters(program);
  EXPECT_TRUE(program.parameters[0].is_streamed());
  EXPECT_TRUE(program.parameters[1].is_cached());
  EXPECT_TRUE(program.parameters[2].is_streamed());
  EXPECT_TRUE(program.parameters[3].is_cached());
}

TEST(ParameterPlaces, OthersLeaveRoom) {
  tiled::TiledProgram program = chunks({{30, false}, {30, false}}, 60);
  CacheRoom room;
  room.first_line.fill(25);
  room.first_line[3] = 2;
  room.end_line = 40;
  place_parameters(program, room);
  EXPECT_EQ(program.parameters[0].at, (std::vector<tiled::ParameterPiece>{{3, 2, 30}}));
  EXPECT_EQ(program.parameters[1].at, (std::vector<tiled::ParameterPiece>{{0, 25, 15}, {1, 25, 15}}));
  room.lines = 59;
  place_parameters(program, room);
  EXPECT_TRUE(program.parameters[1].is_streamed());
}

TEST(ParameterPlaces, GivenPlacesAreChecked) {
  using Places = std::vector<std::vector<tiled::ParameterPiece>>;
  tiled::TiledProgram program = chunks({{10, false}, {10, true}}, 60);
  EXPECT_TRUE(use_parameter_places(program, Places{{{3, 0, 10}}, {{3, 10, 10}}}).ok());
  EXPECT_EQ(program.parameters[1].at.front().line, 10);
  EXPECT_FALSE(use_parameter_places(program, Places{{{3, 0, 10}}, {{3, 9, 10}}}).ok()) << "overlap";
  EXPECT_FALSE(use_parameter_places(program, Places{{{3, 0, 10}}, {{3, 51, 10}}}).ok()) << "in the scratch";
  EXPECT_FALSE(use_parameter_places(program, Places{{{3, 0, 9}}, {{3, 10, 10}}}).ok()) << "too few lines";
  EXPECT_FALSE(use_parameter_places(program, Places{{{3, 0, 10}}}).ok()) << "too few chunks";
  EXPECT_FALSE(use_parameter_places(program, Places{{{16, 0, 10}}, {{3, 10, 10}}}).ok()) << "no such tile";
}

// Four objects of 10 bytes, each of which is used by two steps; the first one again by the last step.
tiled::TiledProgram chain_with_a_long_life() {
  tiled::TiledProgram program;
  for (int i = 0; i < 4; ++i) program.narrow.push_back({.bytes = 10, .life = {i, i + 1}});
  program.narrow[0].life.last = 4;
  for (int i = 0; i < 5; ++i) {
    tiled::Step step;
    for (int k = std::max(0, i - 1); k <= std::min(i, 3); ++k) step.narrow_used.push_back(k);
    if (i == 4) step.narrow_used.push_back(0);
    program.steps.push_back(step);
  }
  return program;
}

TEST(PutAside, WhatIsNotUsedWhileTooMuchExists) {
  tiled::TiledProgram program = chain_with_a_long_life();
  ASSERT_TRUE(put_aside(program, 20));
  ASSERT_EQ(program.steps.size(), 7u);
  EXPECT_FALSE(std::get<tiled::Spill>(program.steps[2].work).is_back);
  EXPECT_TRUE(std::get<tiled::Spill>(program.steps[5].work).is_back);
  EXPECT_EQ(program.narrow[0].away, (std::vector<tiled::Lifetime>{{3, 4}}));
  EXPECT_EQ(program.narrow[0].life, (tiled::Lifetime{0, 6}));
  ASSERT_EQ(program.wide.size(), 1u);
  EXPECT_EQ(program.wide[0].life, (tiled::Lifetime{2, 5}));
  EXPECT_TRUE(program.narrow[0].exists_with(program.narrow[1]));
  EXPECT_FALSE(program.narrow[0].exists_with(program.narrow[2]));
  EXPECT_TRUE(program.narrow[0].exists_with(program.narrow[3]));
}

TEST(PutAside, WhatIsUsedTogetherCannotBe) {
  tiled::TiledProgram program = chain_with_a_long_life();
  EXPECT_FALSE(put_aside(program, 19));
}

// Parts lie at one line, behind the longest that is there, or each behind what its tile has.
TEST(ParameterPlaces, PartsOnTheirTiles) {
  using Pieces = std::vector<tiled::ParameterPiece>;
  for (const bool at_one_line : {true, false}) {
    tiled::TiledProgram program = chunks({{25, false}, {25, false}}, 60);
    for (tiled::ParameterChunk& chunk : program.parameters) {
      chunk.part_lines = 10;
      chunk.parts_at_one_line = at_one_line;
    }
    place_parameters(program, {});
    EXPECT_EQ(program.parameters[0].at, (Pieces{{0, 0, 10}, {1, 0, 10}, {2, 0, 5}}));
    EXPECT_EQ(program.parameters[1].at, (Pieces{{0, 10, 10}, {1, 10, 10}, {2, at_one_line ? 10 : 5, 5}}));
    const std::vector<Pieces> uneven = {{{0, 0, 10}, {1, 0, 10}, {2, 0, 5}}, {{0, 10, 10}, {1, 10, 10}, {2, 7, 5}}};
    EXPECT_EQ(use_parameter_places(program, uneven).ok(), !at_one_line);
    const std::vector<Pieces> elsewhere = {{{0, 0, 10}, {1, 0, 10}, {2, 0, 5}}, {{0, 10, 10}, {3, 10, 10}, {2, 7, 5}}};
    EXPECT_FALSE(use_parameter_places(program, elsewhere).ok());
  }
}

// Parts on four tiles, then parts at one line on all: what is left below those is for others, where all is needed.
TEST(ParameterPlaces, GapsBelowPartsAtOneLineAreUsed) {
  using Pieces = std::vector<tiled::ParameterPiece>;
  const auto placed = [](std::int32_t last, tiled::Level level) {
    tiled::TiledProgram program = chunks({{200, false}, {160, false}, {20, true}, {last, false}}, 100);
    program.level = level;
    program.parameters[0].part_lines = 50;
    program.parameters[1].part_lines = 10;
    place_parameters(program, {});
    return program;
  };
  // Lines 60 to 99 are free on all tiles, and 0 to 49 on twelve of them.
  const tiled::TiledProgram roomy = placed(600, tiled::Level::kBetter);
  EXPECT_EQ(roomy.parameters[2].at, (Pieces{{0, 60, 20}})) << "gaps are left alone where all fits without them";
  const tiled::TiledProgram tight = placed(1100, tiled::Level::kBetter);
  ASSERT_TRUE(tight.parameters[3].is_cached());
  EXPECT_EQ(tight.parameters[2].at, (Pieces{{4, 0, 20}}));
  std::array<std::vector<bool>, chip::kTiles> used;
  for (auto& lines : used) lines.resize(100);
  for (const tiled::ParameterChunk& chunk : tight.parameters) {
    std::int32_t lines = 0;
    for (const tiled::ParameterPiece& piece : chunk.at) {
      for (std::int32_t line = piece.line; line < piece.line + piece.lines; ++line, ++lines) {
        auto bit = used[reef::at(piece.tile)].begin() + line;
        EXPECT_FALSE(*bit) << "tile " << piece.tile << ", line " << line;
        *bit = true;
      }
    }
    EXPECT_EQ(lines, chunk.lines);
  }
  EXPECT_TRUE(placed(1100, tiled::Level::kAsGoogle).parameters[3].is_streamed());
}

}  // namespace
}  // namespace reef::schedule

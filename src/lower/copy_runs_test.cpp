// SPDX-License-Identifier: Apache-2.0
#include "lower/copy_runs.h"

#include <random>

#include <gtest/gtest.h>

namespace reef::lower {
namespace {

void make_moves(const MoveNest& nest, std::size_t level, Move at, std::vector<Move>& moves) {
  if (level == 0) {
    moves.push_back(at);
    return;
  }
  const tiled::CopyDim& dim = nest.dims[level - 1];
  for (std::int32_t i = 0; i < dim.count; ++i) {
    make_moves(nest, level - 1, {at.source + i * dim.source_stride, at.target + i * dim.target_stride}, moves);
  }
}

std::vector<Move> moves_of(const std::vector<MoveNest>& nests) {
  std::vector<Move> moves;
  for (const MoveNest& nest : nests) make_moves(nest, nest.dims.size(), nest.first, moves);
  return moves;
}

TEST(CopyRuns, ABoxIsOneNest) {
  std::vector<Move> moves;
  for (int y = 0; y < 5; ++y) {
    for (int x = 0; x < 3; ++x) {
      for (int w = 0; w < 4; ++w) moves.push_back({1000 + 400 * x + 40 * y + 4 * w, 7 + 900 * y + 16 * x + 4 * w});
    }
  }
  const auto nests = as_nests(moves, 6, 1 << 14);
  ASSERT_EQ(nests.size(), 1u);
  EXPECT_EQ(nests[0].first, (Move{1000, 7}));
  ASSERT_EQ(nests[0].dims.size(), 3u);
  EXPECT_EQ(nests[0].dims[1], (tiled::CopyDim{3, 400, 16}));
  EXPECT_EQ(moves_of(nests), moves);
}

TEST(CopyRuns, LimitsAreKept) {
  std::vector<Move> moves;
  for (int i = 0; i < 100; ++i) moves.push_back({4 * i, 4 * i});
  for (const auto& nest : as_nests(moves, 1, 30)) {
    ASSERT_LE(nest.dims.size(), 1u);
    EXPECT_LE(nest.dims.empty() ? 1 : nest.dims[0].count, 30);
  }
  EXPECT_EQ(moves_of(as_nests(moves, 1, 30)), moves);
  EXPECT_TRUE(as_nests({}, 4, 10).empty());
}

TEST(CopyRuns, AnyListIsReproduced) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    std::vector<Move> moves;
    while (moves.size() < 200) {
      const Move first{static_cast<std::int32_t>(random() % 50), static_cast<std::int32_t>(random() % 50)};
      const int run = static_cast<int>(random() % 9), step = static_cast<int>(random() % 4);
      for (int i = 0; i < run; ++i) moves.push_back({first.source + i * step, first.target + 4 * i});
    }
    EXPECT_EQ(moves_of(as_nests(moves, 1 + random() % 6, 2 + static_cast<std::int32_t>(random() % 20))), moves);
  }
}

}  // namespace
}  // namespace reef::lower

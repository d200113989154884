// SPDX-License-Identifier: Apache-2.0
#include "tiled/axis_partition.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace reef::tiled {
namespace {

std::vector<int> owns(const AxisPartition& axis) {
  std::vector<int> result;
  for (const TileShare& share : axis.tiles) result.push_back(share.own());
  return result;
}

TEST(AxisPartition, CutsRoundUp) {
  EXPECT_EQ(owns(AxisPartition::of(8, {})), (std::vector<int>{2, 2, 2, 2}));
  EXPECT_EQ(owns(AxisPartition::of(10, {})), (std::vector<int>{3, 2, 3, 2}));
  EXPECT_EQ(owns(AxisPartition::of(3, {})), (std::vector<int>{1, 1, 1, 0}));
  EXPECT_EQ(owns(AxisPartition::of(2, {})), (std::vector<int>{1, 0, 1, 0}));
}

TEST(AxisPartition, WithoutReadersThereIsNoHalo) {
  const AxisPartition axis = AxisPartition::of(10, {});
  EXPECT_FALSE(axis.has_halo());
  EXPECT_EQ(axis.max_length(), 3);
}

TEST(AxisPartition, SameWindowNeedsItsReachOnBothSides) {
  const Window window{.outputs = 12, .kernel = 3, .stride = 1, .dilation = 1, .pad_before = 1};
  const AxisPartition axis = AxisPartition::of(12, {{window}});
  for (const TileShare& share : axis.tiles) {
    EXPECT_EQ(share.before, 1);
    EXPECT_EQ(share.after, 1);
  }
  EXPECT_EQ(axis.front, 1);
  EXPECT_EQ(axis.length(0), 5);
  EXPECT_EQ(axis.place(1, 3), 1);
}

TEST(AxisPartition, WiderHalosThanSharesAreRelayed) {
  const Window window{.outputs = 4, .kernel = 5, .stride = 1, .dilation = 1, .pad_before = 2};
  const AxisPartition axis = AxisPartition::of(4, {{window}});  // one element each, two needed from each side
  EXPECT_EQ(axis.tile(0).after, 2);
  EXPECT_EQ(axis.tile(1).after, 2);
  EXPECT_EQ(axis.tile(0).before, 2);
  const Window far{.outputs = 1, .kernel = 4, .stride = 1, .dilation = 1, .pad_before = 0};
  const AxisPartition one = AxisPartition::of(4, {{far}});  // only tile 0 computes; the others pass theirs on
  EXPECT_EQ(one.tile(0).after, 3);
  EXPECT_EQ(one.tile(1).after, 2);
  EXPECT_EQ(one.tile(2).after, 1);
  EXPECT_EQ(one.tile(3).after, 0);
  EXPECT_FALSE(one.tile(1).is_read);
}

// Whatever the window: a tile's buffer holds what it needs, and a neighbour has what it is asked for.
TEST(AxisPartition, BuffersHoldWhatIsNeeded) {
  std::mt19937 random(5);
  const auto upto = [&](int most) { return static_cast<std::int32_t>(1 + random() % static_cast<unsigned>(most)); };
  for (int round = 0; round < 5000; ++round) {
    const std::int32_t size = upto(40);
    std::vector<Window> windows;
    for (int i = 0; i < upto(2); ++i) {
      Window window{.outputs = 0, .kernel = upto(7), .stride = upto(3), .dilation = upto(2), .pad_before = 0};
      window.outputs = (size + window.stride - 1) / window.stride;
      window.pad_before = std::max(0, (window.outputs - 1) * window.stride + window.reach() - size) / 2;
      windows.push_back(window);
    }
    const AxisPartition axis = AxisPartition::of(size, windows);
    EXPECT_EQ(axis.tile(3).end, size);
    for (int t = 0; t < kTilesPerAxis; ++t) {
      const TileShare& share = axis.tile(t);
      EXPECT_LE(share.before, axis.front);
      if (share.is_read) {
        EXPECT_GE(axis.place(t, share.needed_begin), axis.front - share.before);
        EXPECT_LE(axis.place(t, share.needed_end), axis.length(t));
      }
      if (t > 0 && t <= axis.last_owner()) {
        EXPECT_LE(axis.tile(t - 1).after, share.own() + share.after);
        EXPECT_LE(share.before, axis.tile(t - 1).own() + axis.tile(t - 1).before);
      }
    }
  }
}

}  // namespace
}  // namespace reef::tiled

// SPDX-License-Identifier: Apache-2.0
#include "micro/greedy_plan.h"

#include <gtest/gtest.h>

namespace reef::micro {
namespace {

TEST(GreedyPlan, LargestFirstEachInTheLowestGap) {
  std::vector<PlannedBuffer> buffers = {{16, 0, 1, 0}, {64, 1, 2, 0}, {32, 2, 3, 0}, {16, 3, 3, 0}};
  EXPECT_EQ(plan_greedily(buffers), 96);
  EXPECT_EQ(buffers[1].offset, 0);   // the largest
  EXPECT_EQ(buffers[2].offset, 64);  // lives with it
  EXPECT_EQ(buffers[0].offset, 64);  // lives with the largest, not with the one at 64
  EXPECT_EQ(buffers[3].offset, 0);   // lives with the second alone
}

TEST(GreedyPlan, OfEqualSizesTheLastIsFirst) {
  std::vector<PlannedBuffer> buffers = {{16, 0, 1, 0}, {16, 0, 1, 0}};
  EXPECT_EQ(plan_greedily(buffers), 32);
  EXPECT_EQ(buffers[1].offset, 0);
  EXPECT_EQ(buffers[0].offset, 16);
}

TEST(GreedyPlan, WhatTheFilePlacesStandsThereAndTheRestFillsGaps) {
  std::vector<PlannedBuffer> buffers = {{16, 0, 2, 0}, {32, 0, 1, 0, 64}, {16, 1, 2, 0, 0}, {64, 1, 1, 0}};
  EXPECT_EQ(plan_greedily(buffers), 160);
  EXPECT_EQ(buffers[1].offset, 64);
  EXPECT_EQ(buffers[2].offset, 0);
  EXPECT_EQ(buffers[3].offset, 96);  // the gap of 48 bytes below 64 is too small
  EXPECT_EQ(buffers[0].offset, 16);
}

TEST(GreedyPlan, NoTwoThatLiveTogetherOverlap) {
  std::vector<PlannedBuffer> buffers;
  std::uint32_t state = 1;
  const auto next = [&state](std::uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int i = 0; i < 200; ++i) {
    const auto first = static_cast<std::int32_t>(next(100));
    buffers.push_back({16 * (1 + next(40)), first, first + static_cast<std::int32_t>(next(20)), 0});
  }
  const std::int64_t end = plan_greedily(buffers);
  for (const PlannedBuffer& a : buffers) {
    EXPECT_LE(a.offset + a.bytes, end);
    for (const PlannedBuffer& b : buffers) {
      if (&a == &b || a.last < b.first || b.last < a.first) continue;
      EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
    }
  }
}

}  // namespace
}  // namespace reef::micro

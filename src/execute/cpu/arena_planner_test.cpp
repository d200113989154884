// SPDX-License-Identifier: Apache-2.0
#include "execute/cpu/arena_planner.h"

#include <random>

#include <gtest/gtest.h>

namespace reef::cpu {
namespace {

void expect_sound(const std::vector<ArenaItem>& items, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), items.size());
  EXPECT_GE(plan.bytes, plan.largest_live_set_bytes);
  for (std::size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kArenaAlignment, 0);
    EXPECT_LE(plan.offsets[i] + items[i].bytes, plan.bytes);
    for (std::size_t k = 0; k < i; ++k) {
      const bool same_time = items[i].first <= items[k].last && items[k].first <= items[i].last;
      const bool same_place =
          plan.offsets[i] < plan.offsets[k] + items[k].bytes && plan.offsets[k] < plan.offsets[i] + items[i].bytes;
      EXPECT_FALSE(same_time && same_place) << i << " and " << k;
    }
  }
}

TEST(ArenaPlanner, NothingNeedsNothing) { EXPECT_EQ(plan_arena({}).bytes, 0); }

TEST(ArenaPlanner, AChainNeedsTwoNeighbours) {
  const std::vector<ArenaItem> items = {{1024, 0, 1}, {512, 1, 2}, {1024, 2, 3}, {512, 3, 4}};
  const ArenaPlan plan = plan_arena(items);
  expect_sound(items, plan);
  EXPECT_EQ(plan.bytes, 1536);
  EXPECT_EQ(plan.largest_live_set_bytes, 1536);
}

TEST(ArenaPlanner, SizesAreRoundedToTheAlignment) {
  const std::vector<ArenaItem> items = {{1, 0, 0}, {65, 0, 0}};
  const ArenaPlan plan = plan_arena(items);
  expect_sound(items, plan);
  EXPECT_EQ(plan.bytes, 192);
}

TEST(ArenaPlanner, RandomGraphsAreSoundAndCloseToTheBound) {
  std::mt19937 random(7);
  double worst = 1;
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaItem> items(1 + random() % 60);
    for (ArenaItem& item : items) {
      item.bytes = random() % 5000;
      item.first = static_cast<std::int32_t>(random() % 40);
      item.last = item.first + static_cast<std::int32_t>(random() % (random() % 4 == 0 ? 20 : 3));
    }
    const ArenaPlan plan = plan_arena(items);
    expect_sound(items, plan);
    if (plan.largest_live_set_bytes > 0) {
      worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(plan.largest_live_set_bytes));
    }
  }
  EXPECT_LE(worst, 1.2);
}

}  // namespace
}  // namespace reef::cpu

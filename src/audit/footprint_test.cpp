// SPDX-License-Identifier: Apache-2.0
#include "audit/footprint.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace reef::audit {
namespace {

isa::NestShape nest_of(std::int64_t base, std::initializer_list<std::pair<std::int64_t, std::int64_t>> dimensions) {
  isa::NestShape nest;
  nest.base = base;
  nest.pass_lengths[0] = 1;
  for (const auto& [stride, count] : dimensions) {
    const auto d = static_cast<std::size_t>(nest.dims++);
    nest.stride[d] = static_cast<std::uint64_t>(stride);
    nest.count[d] = count;
    nest.pass_lengths[d + 1] = nest.pass_lengths[d] * count;
  }
  return nest;
}

std::set<std::int64_t> places_of(const Footprint& footprint) {
  std::set<std::int64_t> places;
  for (const Interval& interval : footprint.intervals) {
    for (std::int64_t i = 0; i < interval.count; ++i) places.insert(interval.first + i);
  }
  return places;
}

// A 3 x 3 window over 10 pixels of a row of 12, four bytes each, rows of 64 bytes.
TEST(AuditFootprint, WindowsThatOverlapAreOneIntervalPerRow) {
  const isa::NestShape nest = nest_of(0, {{4, 3}, {64, 3}, {4, 10}});
  Footprint footprint;
  ASSERT_TRUE(footprint_of(nest, isa::NestCursor(nest, 0), 90, 4, 4, 100, footprint));
  EXPECT_EQ(footprint.intervals, (std::vector<Interval>{{0, 12}, {16, 12}, {32, 12}}));
  EXPECT_EQ(footprint.accesses, 90);
}

TEST(AuditFootprint, RefusesMoreIntervalsThanWanted) {
  const isa::NestShape nest = nest_of(0, {{100, 11}});
  Footprint footprint;
  EXPECT_FALSE(footprint_of(nest, isa::NestCursor(nest, 0), 11, 4, 4, 10, footprint));
  EXPECT_TRUE(footprint_of(nest, isa::NestCursor(nest, 0), 10, 4, 4, 10, footprint));
}

// Blocks and their places beside the steps that they stand for, one by one.
TEST(AuditFootprint, IsWhatSingleStepsTouch) {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 3000; ++round) {
    static constexpr std::int64_t kStrides[] = {0, 1, 3, 4, 4, 8, 12, 16, 64, 64, 128, -4, -64, 7};
    isa::NestShape nest = nest_of(4000 + below(8), {});
    const int dims = 1 + static_cast<int>(below(4));
    for (int k = 0; k < dims; ++k) {
      const auto d = static_cast<std::size_t>(nest.dims++);
      nest.stride[d] = static_cast<std::uint64_t>(kStrides[below(std::ssize(kStrides))]);
      nest.count[d] = 1 + below(5);
      nest.pass_lengths[d + 1] = nest.pass_lengths[d] * nest.count[d];
    }
    isa::NestCursor cursor(nest, 0);
    cursor.seek(below(nest.size()));
    const std::int64_t wanted = 1 + below(nest.size() - cursor.position()), width = 1 + below(8);
    const std::int64_t steps = block_at(nest, cursor, wanted);
    ASSERT_GE(steps, 1);
    ASSERT_LE(steps, wanted);
    ASSERT_EQ(block_at(nest, cursor, steps), steps);
    Footprint footprint;
    ASSERT_TRUE(footprint_of(nest, cursor, steps, width, 4, 10'000, footprint));
    std::set<std::int64_t> places;
    std::int64_t accesses = 0;
    for (std::int64_t i = 0; i < steps; ++i) {
      for (std::int64_t at = cursor.address() >> 2; at <= (cursor.address() + width - 1) >> 2; ++at) {
        places.insert(at);
        ++accesses;
      }
      cursor.advance();
    }
    ASSERT_EQ(places_of(footprint), places) << "round " << round;
    ASSERT_EQ(footprint.accesses, accesses) << "round " << round;
  }
}

TEST(AuditFootprint, BlocksEndWhereADimensionDoes) {
  const isa::NestShape nest = nest_of(0, {{4, 3}, {64, 3}, {4, 10}});
  isa::NestCursor cursor(nest, 0);
  EXPECT_EQ(block_at(nest, cursor, 2), 2);
  EXPECT_EQ(block_at(nest, cursor, 8), 6);
  EXPECT_EQ(block_at(nest, cursor, 17), 9);
  EXPECT_EQ(block_at(nest, cursor, 1000), 90);
  cursor.seek(4);
  EXPECT_EQ(block_at(nest, cursor, 1000), 2);
  cursor.seek(6);
  EXPECT_EQ(block_at(nest, cursor, 1000), 3);
  cursor.seek(81);
  EXPECT_EQ(block_at(nest, cursor, 1000), 9);
}

}  // namespace
}  // namespace reef::audit

// SPDX-License-Identifier: Apache-2.0
#include "ops/broadcast.h"

#include <numeric>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

namespace reef::ops {
namespace {

// Element of `operand` that belongs to element `position` of `output`, from the definition of broadcasting.
std::int64_t position_by_definition(const ir::Shape& output, const ir::Shape& operand, std::int64_t position) {
  std::int64_t result = 0, stride = 1;
  for (int i = 0; i < output.rank(); ++i) {
    const std::int64_t index = position % output.last(i);
    position /= output.last(i);
    if (i >= operand.rank()) continue;
    if (operand.last(i) != 1) result += index * stride;
    stride *= operand.last(i);
  }
  return result;
}

void expect_plan_follows_definition(const ir::Shape& output, const ir::Shape& a, const ir::Shape& b,
                                    std::int64_t chunk) {
  const BroadcastPlan<2> plan(output, {&a, &b});
  ASSERT_EQ(plan.elements(), output.elements());
  std::int64_t next = 0;
  for (std::int64_t begin = 0; begin < plan.elements(); begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, plan.elements());
    plan.for_each_row(begin, end, [&](std::int64_t first, const Positions<2>& at, std::int64_t count) {
      ASSERT_EQ(first, next);
      ASSERT_LE(first + count, end);
      for (std::int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(at[0] + i * plan.step(0), position_by_definition(output, a, first + i));
        ASSERT_EQ(at[1] + i * plan.step(1), position_by_definition(output, b, first + i));
      }
      next += count;
    });
  }
  EXPECT_EQ(next, output.elements());
}

// Runs give each operand's elements in the same order, whether they lie in the operand or in a buffer.
void expect_runs_follow_definition(const ir::Shape& output, const ir::Shape& a, const ir::Shape& b,
                                   std::int64_t chunk) {
  const BroadcastPlan<2> plan(output, {&a, &b});
  std::vector<std::int32_t> of_a(static_cast<std::size_t>(a.elements())), of_b(static_cast<std::size_t>(b.elements()));
  std::iota(of_a.begin(), of_a.end(), 0);
  std::iota(of_b.begin(), of_b.end(), 0);
  std::int64_t next = 0;
  for (std::int64_t begin = 0; begin < plan.elements(); begin += chunk) {
    const std::int64_t end = std::min(begin + chunk, plan.elements());
    const std::tuple<const std::int32_t*, const std::int32_t*> operands(of_a.data(), of_b.data());
    plan.for_each_run(begin, end, operands,
                      [&](std::int64_t first, const std::int32_t* x, const std::int32_t* y, const Positions<2>& steps,
                          std::int64_t count) {
                        ASSERT_EQ(first, next);
                        ASSERT_LE(first + count, end);
                        for (std::int64_t i = 0; i < count; ++i) {
                          ASSERT_EQ(x[i * steps[0]], position_by_definition(output, a, first + i));
                          ASSERT_EQ(y[i * steps[1]], position_by_definition(output, b, first + i));
                        }
                        next += count;
                      });
  }
  EXPECT_EQ(next, output.elements());
}

TEST(BroadcastPlan, RunsFollowDefinitionForRandomShapesInChunks) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const int rank = 1 + static_cast<int>(random() % 4);
    ir::Shape output, a, b;
    for (int i = 0; i < rank; ++i) {
      const auto size = static_cast<std::int32_t>(i + 1 == rank ? 1 + random() % 300 : 1 + random() % 9);
      const auto kind = random() % 4;
      output.push_back(size);
      a.push_back(kind == 0 ? 1 : size);
      b.push_back(kind == 1 ? 1 : size);
    }
    expect_runs_follow_definition(output, a, b, 1 + static_cast<std::int64_t>(random() % 5000));
  }
}

TEST(BroadcastPlan, FollowsDefinitionForRandomShapesInChunks) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const int rank = static_cast<int>(random() % 8);
    ir::Shape output, a, b;
    for (int i = 0; i < rank; ++i) {
      const auto size = static_cast<std::int32_t>(1 + random() % 3);
      const auto kind = random() % 3;
      output.push_back(size);
      a.push_back(kind == 0 ? 1 : size);
      b.push_back(kind == 1 ? 1 : size);
    }
    // Leading dimensions may be left out where they are 1.
    while (a.rank() > 0 && a[0] == 1 && random() % 2) a = ir::Shape(std::vector(a.begin() + 1, a.end()));
    expect_plan_follows_definition(output, a, b, 1 + static_cast<std::int64_t>(random() % 11));
  }
}

TEST(BroadcastPlan, EqualShapesAreOneRow) {
  const ir::Shape shape{2, 3, 1, 4};
  const BroadcastPlan<2> plan(shape, {&shape, &shape});
  int rows = 0;
  plan.for_each_row(0, 24, [&](std::int64_t, const Positions<2>&, std::int64_t count) {
    ++rows;
    EXPECT_EQ(count, 24);
  });
  EXPECT_EQ(rows, 1);
}

TEST(BroadcastPlan, EmptyOutputHasNoRows) {
  const ir::Shape output{0, 3}, a{0, 3}, b{1, 3};
  const BroadcastPlan<2> plan(output, {&a, &b});
  plan.for_each_row(0, plan.elements(), [](std::int64_t, const Positions<2>&, std::int64_t) { FAIL(); });
}

}  // namespace
}  // namespace reef::ops

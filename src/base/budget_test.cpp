// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <atomic>
#include <cmath>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace reef {
namespace {

void wait_for_the_end(const Budget& budget) {
  while (!budget.is_over()) std::this_thread::yield();
}

TEST(Budget, WithoutLimitsNothingEnds) {
  const Budget budget;
  budget.cancel();
  EXPECT_FALSE(budget.is_over());
  EXPECT_TRUE(budget.check("testing").ok());
  EXPECT_TRUE(budget.take(std::numeric_limits<std::int64_t>::max(), "everything").ok());
  EXPECT_TRUE(std::isinf(budget.seconds_left()));
  EXPECT_EQ(budget.bytes_left(), std::numeric_limits<std::int64_t>::max());
  EXPECT_TRUE(Budget(BudgetLimits{}).check("testing").ok());
  EXPECT_FALSE(Budget(BudgetLimits{}).has_time_limit());
}

TEST(Budget, TheMessageNamesLimitStageAndOption) {
  const Budget budget({.seconds = 1e-6, .time_option = "-t SECONDS"});
  wait_for_the_end(budget);
  const Status status = budget.check("planning");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(),
            "the time limit of 1e-06 s ended while planning; if the input can be trusted, raise the limit with -t "
            "SECONDS (0: no limit)");
  EXPECT_EQ(budget.seconds_left(), 0);
}

TEST(Budget, CopiesShareOneAccountOfMemory) {
  const Budget budget({.bytes = 1 << 20});
  const Budget copy = budget;
  EXPECT_TRUE(budget.take(600'000, "a table").ok());
  const Status status = copy.within(1e6).take(600'000, "the other table");
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("the memory limit of 1 MiB does not suffice: the other table needs 0.5722 MiB, with "
                                  "0.5722 MiB in use"),
            std::string::npos)
      << status.message();
  budget.give_back(600'000);
  EXPECT_TRUE(copy.take(600'000, "the other table").ok());
  EXPECT_EQ(budget.bytes_left(), (1 << 20) - 600'000);
}

TEST(Budget, BytesComeBackWithTheirHolder) {
  const Budget budget({.bytes = 100});
  {
    BudgetedBytes held;
    EXPECT_TRUE(held.take(budget, 60, "a").ok());
    EXPECT_FALSE(held.take(budget, 60, "b").ok());
    const BudgetedBytes moved = std::move(held);
    EXPECT_EQ(budget.bytes_in_use(), 60);
  }
  EXPECT_EQ(budget.bytes_in_use(), 0);
}

TEST(Budget, AnInnerLimitEndsBeforeTheOuterOneAndNeverAfterIt) {
  const Budget outer({.seconds = 1e6});
  const Budget inner = outer.within(1e-6, "the option of one inference");
  wait_for_the_end(inner);
  EXPECT_FALSE(outer.is_over());
  EXPECT_NE(inner.check("running").message().find("the option of one inference"), std::string::npos);
  const Budget ended({.seconds = 1e-6});
  const Budget longer = ended.within(1e6);
  wait_for_the_end(ended);
  EXPECT_TRUE(longer.is_over());
  EXPECT_NE(longer.check("running").message().find("1e-06 s"), std::string::npos);
}

TEST(Budget, CancellationReachesEverybody) {
  const Budget budget({.seconds = 1e300});
  const Budget inner = budget.within(1e5);
  EXPECT_FALSE(inner.is_over());
  std::thread([copy = budget] { copy.cancel(); }).join();
  EXPECT_TRUE(inner.is_over());
  EXPECT_EQ(inner.check("running").message(), "the work was cancelled while running");
}

TEST(Budget, ThreadsNeverTakeMoreThanTheLimit) {
  const Budget budget({.bytes = 1000});
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) taken += budget.take(7, "a piece").ok() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1000 / 7);
}

}  // namespace
}  // namespace reef

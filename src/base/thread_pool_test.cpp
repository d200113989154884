// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <atomic>
#include <vector>

#include <gtest/gtest.h>

namespace reef {
namespace {

TEST(ThreadPool, EveryIndexIsVisitedOnceForAnyThreadCount) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t count : {0, 1, 7, 1000}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      pool.parallel_for(count, 3, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LE(end - begin, 3);
        for (std::int64_t i = begin; i < end; ++i) ++visits[static_cast<std::size_t>(i)];
      });
      for (const auto& visit : visits) EXPECT_EQ(visit.load(), 1);
    }
  }
}

TEST(ThreadPool, ManySmallLoopsInARow) {
  ThreadPool pool(4);
  std::atomic<int> sum{0};
  for (int i = 0; i < 2000; ++i) {
    pool.parallel_for(8, 1, [&](std::int64_t begin, std::int64_t) { sum += static_cast<int>(begin); });
  }
  EXPECT_EQ(sum.load(), 2000 * 28);
}

TEST(ThreadPool, PastTheDeadlineTheRestIsSkipped) {
  ThreadPool pool(2);
  EXPECT_FALSE(pool.past_deadline());
  pool.set_deadline(1e-9);
  while (!pool.past_deadline()) {
  }
  int calls = 0;
  pool.parallel_for(1000, 1000, [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 0);
  pool.set_deadline(0);
  pool.parallel_for(1000, 1000, [&](std::int64_t, std::int64_t) { ++calls; });
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace reef

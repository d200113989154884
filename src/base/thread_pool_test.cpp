// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"
#include "base/at.h"

#include <atomic>
#include <chrono>
#include <stdexcept>
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
        for (std::int64_t i = begin; i < end; ++i) ++visits[at(i)];
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

// The first chunk lasts until all others are done, so others must do those that its thread would have come to.
// A worker that was woken for the last loop, and came too late for it, once missed that the pool ended: the destructor
// then waited for ever.
TEST(ThreadPool, EndsRightBehindALoop) {
  constexpr int kPools = 10000;
  std::atomic<int> visits{0};
  for (int i = 0; i < kPools; ++i) {
    ThreadPool pool(2 + i % 4);
    pool.parallel_for(4, 1, [&](std::int64_t, std::int64_t) { ++visits; });
  }
  EXPECT_EQ(visits.load(), 4 * kPools);
}

TEST(ThreadPool, ChunksOfABusyThreadAreTakenByOthers) {
  for (const int threads : {2, 3}) {
    ThreadPool pool(threads);
    constexpr int kChunks = 10;
    for (int busy_chunk : {0, kChunks - 1}) {
      std::atomic<int> done{0};
      pool.parallel_for(kChunks, 1, [&](std::int64_t begin, std::int64_t) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (begin == busy_chunk && done < kChunks - 1 && std::chrono::steady_clock::now() < end) {
        }
        if (begin != busy_chunk || done == kChunks - 1) ++done;
      });
      EXPECT_EQ(done.load(), kChunks) << threads << " threads, chunk " << busy_chunk;
    }
  }
}

TEST(ThreadPool, WhatAChunkThrowsReachesTheCaller) {
  ThreadPool pool(3);
  for (int thrower = 0; thrower < 9; ++thrower) {
    const auto loop = [&] {
      pool.parallel_for(9, 1, [&](std::int64_t begin, std::int64_t) {
        if (begin == thrower) throw std::runtime_error("a chunk");
      });
    };
    EXPECT_THROW(loop(), std::runtime_error);
    std::atomic<int> visits{0};
    pool.parallel_for(100, 7, [&](std::int64_t begin, std::int64_t end) { visits += static_cast<int>(end - begin); });
    EXPECT_EQ(visits.load(), 100);
  }
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

// SPDX-License-Identifier: Apache-2.0
// A fixed set of threads that share loops out among themselves.
//
// parallel_for cuts [0, count) into chunks that depend on count and grain alone, never on the number of threads or on
// timing, so a kernel whose chunks write disjoint outputs gives the same bits for any thread count.
#pragma once

#include <cstdint>
#include <memory>

#include "base/function_ref.h"

namespace reef {

class ThreadPool {
 public:
  // `threads` counts the calling thread: 1 means that everything runs in the caller. Values below 1 mean 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(begin, end) for consecutive ranges of at most `grain` indices; returns when all are done. When the
  // deadline set below has passed, remaining ranges are skipped. Not reentrant: `body` must not call parallel_for.
  void parallel_for(std::int64_t count, std::int64_t grain, FunctionRef<void(std::int64_t, std::int64_t)> body);

  // Seconds from now after which parallel_for skips what is left; 0 or less: never.
  void set_deadline(double seconds_from_now);
  bool past_deadline() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reef

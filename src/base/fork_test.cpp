// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <atomic>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/thread_pool.h"

namespace reef {
namespace {

constexpr unsigned kSeconds = 20;  // after which a child that hangs is ended

// Runs `work` in a child process and returns its result; -1 if the child was killed.
template <typename Work>
int in_a_child(const Work& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(kSeconds);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, GenerationsCountForks) {
  const std::uint32_t here = fork_generation();
  EXPECT_EQ(in_a_child([&] { return static_cast<int>(fork_generation() - here); }), 1);
  EXPECT_EQ(in_a_child([&] { return in_a_child([&] { return static_cast<int>(fork_generation() - here); }); }), 2);
  EXPECT_EQ(fork_generation(), here);
}

TEST(Fork, NoChildInheritsALockedMutex) {
  static auto* const mutex = new ForkSafeMutex;
  std::atomic<bool> stops = false;
  std::thread other([&] {
    while (!stops) {
      const std::lock_guard lock(*mutex);
      ::usleep(200);
    }
  });
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(in_a_child([] {
                const std::lock_guard lock(*mutex);
                return 0;
              }),
              0);
  }
  stops = true;
  other.join();
}

// The child has no workers: it does the work alone, and does not wait for them in the end.
TEST(Fork, AThreadPoolWorksInAChild) {
  ThreadPool pool(4);
  std::atomic<bool> stops = false;
  std::thread other([&] {
    while (!stops) pool.parallel_for(64, 1, [](std::int64_t, std::int64_t) { ::usleep(20); });
  });
  for (int i = 0; i < 20; ++i) {
    ::usleep(500);
    EXPECT_EQ(in_a_child([&] {
                std::atomic<int> sum = 0;
                pool.parallel_for(100, 7, [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t k = begin; k < end; ++k) sum += static_cast<int>(k);
                });
                pool.~ThreadPool();
                return sum == 4950 ? 0 : 1;
              }),
              0);
  }
  stops = true;
  other.join();
}

}  // namespace
}  // namespace reef

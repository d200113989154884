// SPDX-License-Identifier: Apache-2.0
#include "base/thread_group.h"

#include <atomic>
#include <stdexcept>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/thread_pool.h"

namespace reef {
namespace {

TEST(ThreadGroup, AllWorkIsDone) {
  std::atomic<int> sum{0};
  ThreadGroup group;
  ASSERT_TRUE(group.start_all(8, [&](std::size_t i) { sum += static_cast<int>(i); }).ok());
  group.join();
  EXPECT_EQ(sum, 28);
}

TEST(ThreadGroup, TheFirstExceptionReachesWhoeverJoins) {
  std::atomic<int> done{0};
  ThreadGroup group;
  ASSERT_TRUE(group
                  .start_all(4,
                             [&](std::size_t i) {
                               ++done;
                               if (i == 2) throw std::runtime_error("two");
                             })
                  .ok());
  EXPECT_THROW(group.join(), std::runtime_error);
  EXPECT_EQ(done, 4);
  EXPECT_NO_THROW(group.join());
}

TEST(ThreadGroup, OneThatNobodyJoinsEndsQuietly) {
  ThreadGroup group;
  ASSERT_TRUE(group.start([] { throw std::runtime_error("unheard"); }));
}

TEST(ThreadGroup, NoMemoryBecomesAnError) {
  const auto none = []() -> Result<int> { throw std::bad_alloc(); };
  EXPECT_EQ(or_out_of_memory(none).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(*or_out_of_memory([]() -> Result<int> { return 3; }), 3);
}

// What `work` returns in a process that gets no more memory for stacks, so that no thread can be started.
int without_new_threads(int (*work)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit little{std::size_t{1} << 28, std::size_t{1} << 28};
    const rlimit huge_stacks{std::size_t{1} << 34, RLIM_INFINITY};  // glibc gives each thread as much
    ::setrlimit(RLIMIT_AS, &little);
    ::setrlimit(RLIMIT_STACK, &huge_stacks);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 34);
    ::pthread_setattr_default_np(&attributes);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ThreadGroup, ARefusedThreadIsReported) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more addresses than this test allows";
#endif
  EXPECT_EQ(without_new_threads([] {
              ThreadGroup group;
              const Status status = group.start_all(3, [](std::size_t) {});
              return status.code() == StatusCode::kResourceExhausted && group.size() == 0 ? 0 : 1;
            }),
            0);
}

TEST(ThreadGroup, APoolWithoutThreadsDoesTheWorkItself) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs more addresses than this test allows";
#endif
  EXPECT_EQ(without_new_threads([] {
              ThreadPool pool(4);
              std::int64_t sum = 0;
              pool.parallel_for(100, 1, [&](std::int64_t begin, std::int64_t) { sum += begin; });
              return pool.threads() == 1 && sum == 4950 ? 0 : 1;
            }),
            0);
}

}  // namespace
}  // namespace reef

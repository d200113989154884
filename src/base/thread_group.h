// SPDX-License-Identifier: Apache-2.0
// Threads that may be refused and whose work may throw, without ending the process.
//
// A std::thread that cannot be started throws while its siblings run, and their destructors then end the program; so
// does an exception that leaves a thread. Both happen when memory or a limit of the system is reached.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "base/status.h"

namespace reef {

class ThreadGroup {
 public:
  ThreadGroup() = default;
  ~ThreadGroup() { wait(); }
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  // False: the system has no more threads, or no memory for one, and `work` is not done. Whoever can do with fewer
  // threads goes on.
  [[nodiscard]] bool start(std::function<void()> work);
  // An error if one of these could not be started. Those before it run.
  Status start_all(std::size_t count, const std::function<void(std::size_t)>& work);
  std::size_t size() const { return threads_.size(); }

  void wait();
  // wait(), and then throws what the first of the threads threw.
  void join();

 private:
  void remember_exception();

  std::mutex mutex_;
  std::exception_ptr failure_;  // guarded by mutex_
  std::vector<std::thread> threads_;
};

// Runs `work`, which returns a Status or a Result: no memory becomes an error.
template <typename Work>
auto or_out_of_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return make_error(StatusCode::kResourceExhausted, "out of memory");
  }
}

}  // namespace reef

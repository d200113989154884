// SPDX-License-Identifier: Apache-2.0
#include "base/thread_group.h"

#include <new>
#include <system_error>
#include <utility>

namespace reef {

bool ThreadGroup::start(std::function<void()> work) {
  try {
    threads_.reserve(threads_.size() + 1);  // else a thread that runs could have no place in the list
    threads_.emplace_back([this, work = std::move(work)] {
      try {
        work();
      } catch (...) {
        remember_exception();
      }
    });
    return true;
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return false;
}

Status ThreadGroup::start_all(std::size_t count, const std::function<void(std::size_t)>& work) {
  for (std::size_t i = 0; i < count; ++i) {
    if (start([work, i] { work(i); })) continue;
    return make_error(StatusCode::kResourceExhausted,
                      "the system starts no more threads: {} of {} run; raise its limit (ulimit -u) or use fewer", i,
                      count);
  }
  return ok_status();
}

void ThreadGroup::wait() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ThreadGroup::join() {
  wait();
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadGroup::remember_exception() {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = std::current_exception();
}

}  // namespace reef

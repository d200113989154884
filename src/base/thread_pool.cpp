// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace reef {

using Clock = std::chrono::steady_clock;

namespace {

// Waits for something that is about to happen, for some 20 microseconds at most. Whoever calls it must check again.
template <typename Happened>
void look_out_for(const Happened& happened) {
  constexpr int kLooks = 1000;
  for (int i = 0; i < kLooks && !happened(); ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

struct ThreadPool::Impl {
  std::vector<std::thread> workers;
  // A loop is begun by opening it and counting it; a worker that sees a new count joins by adding itself to `busy` and
  // then looking whether it is open. The caller closes the loop and then waits until nobody is busy. All of these are
  // sequentially consistent: a worker either sees that the loop is closed or is waited for.
  std::atomic<int> generation{0};    // counts loops
  std::atomic<bool> is_open{false};  // the current loop may still be joined; late workers are not waited for
  std::atomic<int> busy{0};          // workers inside the current loop, or about to find it closed
  std::atomic<bool> stopping{false};

  // The current loop, constant while it is open or someone is inside.
  const FunctionRef<void(std::int64_t, std::int64_t)>* body = nullptr;
  std::int64_t count = 0;
  std::int64_t grain = 1;
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;  // the first, guarded by mutex

  bool has_deadline = false;
  Clock::time_point deadline;

  bool late() const { return has_deadline && Clock::now() > deadline; }

  // What a chunk throws ends the loop and reaches the caller of parallel_for, whichever thread it was thrown on.
  void take_chunks() {
    try {
      for (;;) {
        const std::int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
        if (begin >= count || late()) return;
        (*body)(begin, std::min(begin + grain, count));
      }
    } catch (...) {
      next.store(count, std::memory_order_relaxed);
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void worker() {
    for (int seen = 0;;) {
      // Loops come in quick succession while a model runs: looking out for the next is faster than being woken for it.
      look_out_for([&] { return generation.load(std::memory_order_relaxed) != seen; });
      generation.wait(seen);
      if (stopping) return;
      ++busy;
      seen = generation;
      if (is_open) take_chunks();
      if (--busy == 0) busy.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>()) {
  for (int i = 1; i < threads; ++i) impl_->workers.emplace_back([impl = impl_.get()] { impl->worker(); });
}

ThreadPool::~ThreadPool() {
  impl_->stopping = true;
  ++impl_->generation;
  impl_->generation.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

int ThreadPool::threads() const { return static_cast<int>(impl_->workers.size()) + 1; }

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  if (impl_->workers.empty() || count <= grain) {
    for (std::int64_t begin = 0; begin < count && !impl_->late(); begin += std::min(grain, count - begin)) {
      body(begin, begin + std::min(grain, count - begin));
    }
    return;
  }
  impl_->body = &body;
  impl_->count = count;
  impl_->grain = grain;
  impl_->next.store(0, std::memory_order_relaxed);
  impl_->is_open = true;
  ++impl_->generation;
  impl_->generation.notify_all();
  impl_->take_chunks();
  impl_->is_open = false;
  look_out_for([&] { return impl_->busy.load(std::memory_order_relaxed) == 0; });
  for (int busy = impl_->busy; busy != 0; busy = impl_->busy) impl_->busy.wait(busy);
  std::lock_guard lock(impl_->mutex);
  if (impl_->failure) std::rethrow_exception(std::exchange(impl_->failure, nullptr));
}

void ThreadPool::set_deadline(double seconds_from_now) {
  impl_->has_deadline = seconds_from_now > 0;
  if (impl_->has_deadline) {
    constexpr double kLongest = 1e9;  // seconds; more would overflow the clock
    const std::chrono::duration<double> wait(std::min(seconds_from_now, kLongest));
    impl_->deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  }
}

bool ThreadPool::past_deadline() const { return impl_->late(); }

}  // namespace reef

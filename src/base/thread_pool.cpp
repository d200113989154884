// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include "base/fork.h"
#include "base/thread_group.h"

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

// Chunks [begin, end) of a loop that one thread begins with, from the front; others, when they have nothing left of
// their own, take from the back. Each thread has the same part of every loop, so that what one operator leaves in its
// core's cache is what it reads in the next.
struct alignas(64) Share {
  std::int64_t begin = 0;             // the owner's alone
  std::atomic<std::int64_t> end{0};   // taken from the back
  std::atomic<std::int64_t> left{0};  // chunks that nobody has taken

  // A chunk may be taken if one is left; whoever counts it off gets one.
  bool take() {
    std::int64_t now = left.load(std::memory_order_relaxed);
    while (now > 0) {
      if (left.compare_exchange_weak(now, now - 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
};

}  // namespace

struct ThreadPool::Impl {
  explicit Impl(int threads) : generation_of_process(fork_generation()), shares(static_cast<std::size_t>(threads)) {}

  const std::uint32_t generation_of_process;
  ThreadGroup workers;
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
  std::vector<Share> shares;  // of the caller, then of each worker
  std::mutex mutex;
  std::exception_ptr failure;  // the first, guarded by mutex

  bool has_deadline = false;
  Clock::time_point deadline;

  bool late() const { return has_deadline && Clock::now() > deadline; }
  // A child of fork() has no workers, and what they were doing is half done.
  bool is_copy() const { return fork_generation() != generation_of_process; }

  // Before the loop is open.
  void share_out() {
    const std::int64_t chunks = (count + grain - 1) / grain, threads = static_cast<std::int64_t>(shares.size());
    std::int64_t begin = 0;
    for (std::int64_t i = 0; i < threads; ++i) {
      const std::int64_t size = chunks / threads + (i < chunks % threads ? 1 : 0);
      Share& share = shares[at(i)];
      share.begin = begin;
      share.end.store(begin + size, std::memory_order_relaxed);
      share.left.store(size, std::memory_order_relaxed);
      begin += size;
    }
  }

  void run(std::int64_t chunk) const { (*body)(chunk * grain, std::min((chunk + 1) * grain, count)); }

  // An exception of a chunk ends the loop and reaches the caller of parallel_for, whichever thread threw it.
  void take_chunks(std::size_t thread) {
    try {
      Share& own = shares[thread];
      while (own.take() && !late()) run(own.begin++);
      for (std::size_t i = 1; i < shares.size(); ++i) {
        Share& other = shares[(thread + i) % shares.size()];
        while (other.take() && !late()) run(other.end.fetch_sub(1, std::memory_order_relaxed) - 1);
      }
    } catch (...) {
      for (Share& share : shares) share.left.store(0, std::memory_order_relaxed);
      std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  }

  void worker(std::size_t thread) {
    for (int seen = 0;;) {
      // Loops come in quick succession while a model runs: looking out for the next is faster than being woken for it.
      look_out_for([&] { return generation.load(std::memory_order_relaxed) != seen; });
      generation.wait(seen);
      // The count is read first: whoever sees the destructor's sees `stopping`, too, and does not wait for another.
      seen = generation;
      if (stopping) return;
      ++busy;
      if (is_open) take_chunks(thread);
      if (--busy == 0) busy.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : impl_(std::make_unique<Impl>(std::max(threads, 1))) {
  // Where the system has no more threads or memory, those that there are do the work: the others' chunks are taken from
  // them, and no result depends on the number of threads.
  bool is_started = true;
  for (int i = 1; i < threads && is_started; ++i) {
    is_started = impl_->workers.start([impl = impl_.get(), i] { impl->worker(static_cast<std::size_t>(i)); });
  }
}

ThreadPool::~ThreadPool() {
  if (impl_->is_copy()) {
    (void)impl_.release();  // threads that are not there can be neither joined nor forgotten
    return;
  }
  impl_->stopping = true;
  ++impl_->generation;
  impl_->generation.notify_all();
  impl_->workers.wait();
}

int ThreadPool::threads() const { return static_cast<int>(impl_->workers.size()) + 1; }

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain,
                              FunctionRef<void(std::int64_t, std::int64_t)> body) {
  if (count <= 0) return;
  grain = std::max<std::int64_t>(grain, 1);
  if (impl_->workers.size() == 0 || count <= grain || impl_->is_copy()) {
    for (std::int64_t begin = 0; begin < count && !impl_->late(); begin += std::min(grain, count - begin)) {
      body(begin, begin + std::min(grain, count - begin));
    }
    return;
  }
  impl_->body = &body;
  impl_->count = count;
  impl_->grain = grain;
  impl_->share_out();
  impl_->is_open = true;
  ++impl_->generation;
  impl_->generation.notify_all();
  impl_->take_chunks(0);
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

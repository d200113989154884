// SPDX-License-Identifier: Apache-2.0
#include "base/fork.h"

#include <atomic>
#include <vector>

#include <pthread.h>

namespace reef {
namespace {

struct Forks {
  std::atomic<std::uint32_t> generation{0};
  std::mutex mutex;  // of the list
  std::vector<ForkSafeMutex*> locks;
};

Forks* made();

Forks& forks() {
  static Forks* const instance = made();
  return *instance;
}

void before_fork() {
  forks().mutex.lock();
  for (ForkSafeMutex* lock : forks().locks) lock->lock();
}
void after_fork() {
  for (ForkSafeMutex* lock : forks().locks) lock->unlock();
  forks().mutex.unlock();
}
void in_child() {
  forks().generation.fetch_add(1, std::memory_order_relaxed);
  after_fork();
}

// Never destroyed: threads may still run at exit.
Forks* made() {
  ::pthread_atfork(before_fork, after_fork, in_child);
  return new Forks;
}

}  // namespace

std::uint32_t fork_generation() { return forks().generation.load(std::memory_order_relaxed); }

ForkSafeMutex::ForkSafeMutex() {
  const std::lock_guard lock(forks().mutex);
  forks().locks.push_back(this);
}

}  // namespace reef

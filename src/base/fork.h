// SPDX-License-Identifier: Apache-2.0
// Rules for fork(): the child has one thread, and a copy of all memory as it was at that moment.
//
// Locks that other threads held stay locked in the child for ever, and what they were changing stays half done. Two
// rules follow. Locks of the whole process that are held for moments are ForkSafeMutex. What a thread works on for long
// (a device, a pool's workers) remembers fork_generation() and begins anew where that has changed.
#pragma once

#include <cstdint>
#include <mutex>

namespace reef {

// Counts the forks between the process in which this was first asked and the one that asks now. Cheap.
std::uint32_t fork_generation();

// A mutex that no child inherits locked: fork() waits until it is free. Only for objects that live as long as the
// process, for moments, and never two at a time.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace reef

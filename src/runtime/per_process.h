// SPDX-License-Identifier: Apache-2.0
// A value that every process has for itself: a child of fork() finds a fresh one, whatever the parent's threads were
// doing with theirs at that moment (base/fork.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/fork.h"

namespace reef::runtime {

template <typename T>
class PerProcess {
 public:
  PerProcess() : state_(new State{fork_generation(), {}}) {}
  // The object of a parent process is neither locked nor destroyed: a thread that does not exist here may have been in
  // the middle of using it.
  ~PerProcess() {
    State* const state = state_;
    if (state->generation == fork_generation()) delete state;
  }
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& get() const {
    State* now = state_;
    while (now->generation != fork_generation()) {
      std::unique_ptr<State> fresh(new State{fork_generation(), {}});
      if (state_.compare_exchange_strong(now, fresh.get())) return fresh.release()->value;
    }
    return now->value;
  }

 private:
  struct State {
    std::uint32_t generation;  // fork_generation() of the process that it belongs to
    T value;
  };
  mutable std::atomic<State*> state_;
};

}  // namespace reef::runtime

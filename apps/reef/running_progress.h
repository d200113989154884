// SPDX-License-Identifier: Apache-2.0
// Progress of long work on standard error: one line that changes on a terminal, now and then a line elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace reef::app {

class RunningProgress {
 public:
  explicit RunningProgress(bool enabled);
  // `done` of `total` steps of a phase (0: nobody knows), with an estimate of the time left. Called by one thread at a
  // time.
  void show(std::string_view phase, std::int64_t done, std::int64_t total);
  void finish();  // clears the line

 private:
  using Clock = std::chrono::steady_clock;
  bool enabled_, is_terminal_;
  std::string phase_;
  Clock::time_point phase_begin_, last_shown_;
};

}  // namespace reef::app

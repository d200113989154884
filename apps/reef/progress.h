// SPDX-License-Identifier: Apache-2.0
// How far long work is, on standard error: one line that is rewritten on a terminal, a line every ten seconds
// elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace reef::app {

class Progress {
 public:
  explicit Progress(std::string what);  // "samples"
  ~Progress();                          // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One call at a time. Shows little more often than a person can read.
  void show(std::int64_t done, std::int64_t all);

 private:
  std::string what_;
  bool is_terminal_ = false;
  bool has_line_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace reef::app

// SPDX-License-Identifier: Apache-2.0
#include "progress.h"

#include <cstdio>

#include <unistd.h>

#include <fmt/format.h>

#include "console.h"

namespace reef::app {
namespace {

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)),
      is_terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (is_terminal_ && has_line_) write_message("\r\033[K");
}

void Progress::show(std::int64_t done, std::int64_t all) {
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::duration<double> interval(is_terminal_ ? 0.2 : 10);
  if (now - last_ < interval || done >= all || done <= 0) return;
  last_ = now;
  const double passed = std::chrono::duration<double>(now - start_).count();
  const double left = passed / static_cast<double>(done) * static_cast<double>(all - done);
  const std::string line =
      fmt::format("reef: {} of {} {}, about {} left (estimated)", done, all, printable(what_), duration(left));
  write_message(is_terminal_ ? "\r" + line + "\033[K" : line + "\n");
  std::fflush(stderr);
  has_line_ = true;
}

}  // namespace reef::app

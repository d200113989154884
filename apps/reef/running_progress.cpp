// SPDX-License-Identifier: Apache-2.0
#include "running_progress.h"

#include <unistd.h>

#include <cstdio>

#include <fmt/format.h>

namespace reef::app {
namespace {

constexpr double kTerminalSeconds = 0.1, kFileSeconds = 10;  // between lines

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

RunningProgress::RunningProgress(bool enabled)
    : enabled_(enabled), is_terminal_(isatty(STDERR_FILENO) == 1), last_shown_(Clock::now()) {}

void RunningProgress::show(std::string_view phase, std::int64_t done, std::int64_t total) {
  if (!enabled_) return;
  const auto now = Clock::now();
  if (phase != phase_) {
    phase_ = phase;
    phase_begin_ = now;
  }
  if (seconds(now - last_shown_) < (is_terminal_ ? kTerminalSeconds : kFileSeconds)) return;
  last_shown_ = now;
  std::string text = total > 0 ? fmt::format("{}: {} of {}", phase, done, total) : fmt::format("{}: {}", phase, done);
  const double spent = seconds(now - phase_begin_);
  if (done > 1 && done < total && spent > 0.5) {
    const double left = spent / static_cast<double>(done - 1) * static_cast<double>(total - done);
    text += fmt::format(", about {:.0f} s left (estimated)", left);
  }
  if (is_terminal_) {
    std::fputs(fmt::format("\r\x1b[K{}", text).c_str(), stderr);
    std::fflush(stderr);
  } else {
    std::fputs(fmt::format("reef: {}\n", text).c_str(), stderr);
  }
}

void RunningProgress::finish() {
  if (enabled_ && is_terminal_) std::fputs("\r\x1b[K", stderr);
}

}  // namespace reef::app

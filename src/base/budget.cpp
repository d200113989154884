// SPDX-License-Identifier: Apache-2.0
#include "base/budget.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <optional>

namespace reef {
namespace {

using Clock = std::chrono::steady_clock;

// Bytes as a person reads them; limits are given in MiB.
std::string size_text(std::int64_t bytes) {
  constexpr double kMib = 1 << 20;
  const auto mib = static_cast<double>(bytes) / kMib;
  return mib < 0.1 ? fmt::format("{} bytes", bytes) : fmt::format("{:.4g} MiB", mib);
}

// Nearly forever: enough for every user, and small enough for the clock's arithmetic.
constexpr double kMostSeconds = 1e9;

}  // namespace

struct Budget::State {
  BudgetLimits limits;
  std::optional<Clock::time_point> deadline;
  std::atomic<bool> is_cancelled = false;
  std::atomic<std::int64_t> used = 0;
  std::shared_ptr<State> parent;  // memory and cancellation are the outermost one's

  State& root() { return parent == nullptr ? *this : parent->root(); }
  bool is_past(Clock::time_point now) const { return deadline && now > *deadline; }
  void set_deadline(double seconds) {
    if (!(seconds > 0)) return;
    const auto wait = std::chrono::duration<double>(std::min(seconds, kMostSeconds));
    deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(wait);
  }
};

Budget::Budget(BudgetLimits limits) : state_(std::make_shared<State>()) {
  state_->set_deadline(limits.seconds);
  state_->limits = std::move(limits);
}

bool Budget::is_over() const {
  if (state_ == nullptr) return false;
  if (state_->root().is_cancelled.load(std::memory_order_relaxed)) return true;
  // An inner deadline is never later than an outer one, but there may be no inner one.
  const State* state = state_.get();
  while (!state->deadline && state->parent != nullptr) state = state->parent.get();
  return state->deadline && state->is_past(Clock::now());
}

Status Budget::check(std::string_view stage) const {
  if (!is_over()) return ok_status();
  if (state_->root().is_cancelled.load(std::memory_order_relaxed)) {
    return make_error(StatusCode::kResourceExhausted, "the work was cancelled while {}", stage);
  }
  const State* state = state_.get();
  const auto now = Clock::now();
  // The outermost limit that has passed is the one to raise.
  for (const State* outer = state; outer != nullptr; outer = outer->parent.get()) {
    if (outer->is_past(now)) state = outer;
  }
  return make_error(StatusCode::kResourceExhausted,
                    "the time limit of {:g} s ended while {}; if the input can be trusted, raise the limit with {} "
                    "(0: no limit)",
                    state->limits.seconds, stage, state->limits.time_option);
}

void Budget::cancel() const {
  if (state_ != nullptr) state_->root().is_cancelled.store(true, std::memory_order_relaxed);
}

Status Budget::take(std::int64_t bytes, std::string_view what) const {
  if (state_ == nullptr || bytes <= 0) return ok_status();
  State& root = state_->root();
  const std::int64_t limit = root.limits.bytes > 0 ? root.limits.bytes : std::numeric_limits<std::int64_t>::max();
  std::int64_t used = root.used.load(std::memory_order_relaxed);
  do {
    if (bytes > limit - used) {
      return make_error(StatusCode::kResourceExhausted,
                        "the memory limit of {} does not suffice: {} needs {}, with {} in use; if the input can be "
                        "trusted, raise the limit with {} (0: no limit)",
                        size_text(limit), what, size_text(bytes), size_text(used), root.limits.memory_option);
    }
  } while (!root.used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return ok_status();
}

void Budget::give_back(std::int64_t bytes) const {
  if (state_ != nullptr && bytes > 0) state_->root().used.fetch_sub(bytes, std::memory_order_relaxed);
}

std::int64_t Budget::bytes_in_use() const {
  return state_ == nullptr ? 0 : state_->root().used.load(std::memory_order_relaxed);
}

Budget Budget::within(double seconds, std::string time_option) const {
  if (!(seconds > 0)) return *this;
  BudgetLimits limits;
  limits.seconds = seconds;
  if (!time_option.empty()) limits.time_option = std::move(time_option);
  if (seconds >= seconds_left()) return *this;
  Budget inner(std::move(limits));
  inner.state_->parent = state_;
  return inner;
}

bool Budget::has_time_limit() const {
  for (const State* state = state_.get(); state != nullptr; state = state->parent.get()) {
    if (state->deadline) return true;
  }
  return false;
}

double Budget::seconds_left() const {
  double left = std::numeric_limits<double>::infinity();
  const auto now = Clock::now();
  for (const State* state = state_.get(); state != nullptr; state = state->parent.get()) {
    if (state->deadline) left = std::min(left, std::chrono::duration<double>(*state->deadline - now).count());
  }
  return std::max(left, 0.0);
}

std::int64_t Budget::bytes_left() const {
  if (state_ == nullptr || state_->root().limits.bytes <= 0) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(state_->root().limits.bytes - bytes_in_use(), 0);
}

}  // namespace reef

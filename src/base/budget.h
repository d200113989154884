// SPDX-License-Identifier: Apache-2.0
// The time and memory that one command (or one call of the library) may take, over all of its stages.
//
// A Budget is a handle: copies share one account, so that an options struct carries it by value through every stage and
// a thread of a stage may use its own copy. A default Budget is unlimited and costs nothing. Whoever loops over foreign
// data asks is_over() at least every few milliseconds (asking takes some 25 ns, so that a loop of nanoseconds asks
// every thousand turns) and whoever allocates in proportion to a number that a file says takes the bytes first. All
// functions may be called from several threads.
//
//   Budget budget({.seconds = 3, .bytes = 1 << 30});
//   REEF_RETURN_IF_ERROR(budget.check("lowering"));              // kResourceExhausted with a sentence for the user
//   REEF_RETURN_IF_ERROR(budget.take(bytes, "the outputs"));     // give_back(bytes) later; or BudgetedBytes
//
// Memory that a stage takes without asking is not counted, such as the model itself (bounded by the file's size).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace reef {

struct BudgetLimits {
  double seconds = 0;      // from the Budget's construction on; 0 or less: no limit
  std::int64_t bytes = 0;  // 0 or less: no limit
  // How a user raises the limits; part of the message when one is reached.
  std::string time_option = "--time-limit SECONDS";
  std::string memory_option = "--memory-limit MIB";
};

class Budget {
 public:
  Budget() = default;  // unlimited; cancel() has no effect
  explicit Budget(BudgetLimits limits);

  // The time has passed, or somebody cancelled.
  bool is_over() const;
  // The same as a Status: "the time limit of 3 s ended while verifying the compiled code; ...". `stage` completes
  // "while ...", as in "planning".
  Status check(std::string_view stage) const;
  // Ends the work of everybody who shares the account, from another thread or from a signal's helper.
  void cancel() const;

  // Counts `bytes` against the limit. `what` completes "... needs", as in "the decoded array".
  Status take(std::int64_t bytes, std::string_view what) const;
  void give_back(std::int64_t bytes) const;
  std::int64_t bytes_in_use() const;

  // A Budget that ends with this one, or already after `seconds` from now (0 or less: with this one); memory and
  // cancellation are shared. For a stage that has a limit of its own, such as one inference of many.
  Budget within(double seconds, std::string time_option = "") const;

  bool has_time_limit() const;
  double seconds_left() const;      // infinity: no limit; never below 0
  std::int64_t bytes_left() const;  // the greatest int64: no limit; never below 0

 private:
  struct State;
  std::shared_ptr<State> state_;  // null: unlimited
};

// Bytes taken from a Budget until the object dies.
class BudgetedBytes {
 public:
  BudgetedBytes() = default;
  ~BudgetedBytes() { release(); }
  BudgetedBytes(const BudgetedBytes&) = delete;
  BudgetedBytes& operator=(const BudgetedBytes&) = delete;
  BudgetedBytes(BudgetedBytes&& other) noexcept : budget_(std::move(other.budget_)), bytes_(other.bytes_) {
    other.bytes_ = 0;
  }
  BudgetedBytes& operator=(BudgetedBytes&& other) noexcept {
    if (this != &other) {
      release();
      budget_ = std::move(other.budget_);
      bytes_ = other.bytes_;
      other.bytes_ = 0;
    }
    return *this;
  }

  // In addition to what it holds.
  Status take(const Budget& budget, std::int64_t bytes, std::string_view what) {
    REEF_RETURN_IF_ERROR(budget.take(bytes, what));
    budget_ = budget;
    bytes_ += bytes;
    return ok_status();
  }
  void release() {
    if (bytes_ > 0) budget_.give_back(bytes_);
    bytes_ = 0;
  }

 private:
  Budget budget_;
  std::int64_t bytes_ = 0;
};

}  // namespace reef

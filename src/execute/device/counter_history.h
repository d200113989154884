// SPDX-License-Identifier: Apache-2.0
// When a counter reached each of its values, and through whom.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "execute/device/moment.h"
#include "execute/device/ordering.h"
#include "isa/operation.h"

namespace reef::device {

// The content of a signal or a message: its moment, and what its sender had done before it.
struct Stamp {
  Moment moment;
  int agent = 0;
  Clock clock = 0;
  SharedClocks clocks;     // null when order is not followed
  double ring_cycles = 0;  // a line: how long the ring carries it
};

// Signals since the counter was last set, in runs of equal distance.
class CounterHistory {
 public:
  // `count` signals: the first at `first`, each following one `step` cycles and `clock_step` moves later. A value
  // stands for all signals up to it, whoever gave them.
  void add(Stamp first, std::int64_t count, double step, Clock clock_step, Spent kind) {
    if (count <= 0) return;
    if (!runs_.empty() && runs_.back().first.agent != first.agent) {
      const Stamp before = end_of(runs_.back());
      first.moment.wait_for(before.moment);
      if (first.clocks) first.clocks = merged(first.clocks, before);
    }
    total_ += count;
    runs_.push_back({std::move(first), total_, count, step, clock_step, kind});
    if (runs_.size() > kMostRuns) runs_.erase(runs_.begin(), runs_.begin() + kMostRuns / 2);
  }
  // At the start of a program.
  void begin(std::uint16_t value) {
    *this = {};
    set_to_ = value_before_ = value;
  }
  void set(std::uint16_t value) {
    value_before_ = this->value();
    runs_.clear();
    total_ = 0;
    set_to_ = value;
    users_.clear();
  }
  std::uint16_t value() const { return static_cast<std::uint16_t>(set_to_ + static_cast<std::uint64_t>(total_)); }
  // When it was set it had, or got, this value or more.
  bool had_reached_before_set(std::uint32_t needed) const { return isa::has_reached(value_before_, needed); }
  bool had_reached_when_set(std::uint32_t needed) const { return isa::has_reached(set_to_, needed); }

  // Who used the counter since it was set, each with the last time: a wait or a signal.
  struct User {
    int agent = 0;
    Clock clock = 0;
    std::uint32_t index = 0;  // of the instruction
    double time = 0;
    bool signals = false;
    std::uint32_t needed = 0;  // by a wait
  };
  void note_user(const User& user) {
    for (User& known : users_) {
      if (known.agent != user.agent || known.signals != user.signals) continue;
      known = user;
      return;
    }
    users_.push_back(user);
  }
  std::span<const User> users() const { return users_; }
  // Who set it last.
  Stamp setter;
  std::uint32_t setter_index = 0;
  // The number of signals at which the counter reached a value, as far as 16 bits tell; below 1: from the beginning.
  std::int64_t number_of(std::uint32_t value) const {
    return total_ + static_cast<std::int16_t>(static_cast<std::uint16_t>(value - this->value()));
  }

  // The signal that made the number of signals `number`, from 1 to total(). False: there is none. Of numbers too old to
  // be remembered, the oldest that is.
  bool find(std::int64_t number, Stamp& stamp) const {
    if (number < 1 || number > total_) return false;
    const auto run = std::lower_bound(runs_.begin(), runs_.end(), number,
                                      [](const Run& r, std::int64_t n) { return r.last_number < n; });
    stamp = run->first;
    const std::int64_t steps = std::max<std::int64_t>(number - (run->last_number - run->count + 1), 0);
    stamp.moment.spend(run->kind, run->step * static_cast<double>(steps));
    stamp.clock += static_cast<Clock>(steps) * run->clock_step;
    return true;
  }

 private:
  // Programs wait for what came lately; this bounds memory for programs that signal and never set a counter.
  static constexpr std::size_t kMostRuns = 1 << 17;
  struct Run;
  static Stamp end_of(const Run& run) {
    Stamp stamp = run.first;
    stamp.moment.spend(run.kind, run.step * static_cast<double>(run.count - 1));
    stamp.clock += static_cast<Clock>(run.count - 1) * run.clock_step;
    return stamp;
  }
  static SharedClocks merged(const SharedClocks& clocks, const Stamp& before) {
    auto all = std::make_shared<Clocks>(*clocks);
    for (std::size_t i = 0; before.clocks && i < all->size(); ++i) (*all)[i] = std::max((*all)[i], (*before.clocks)[i]);
    Clock& own = (*all)[at(before.agent)];
    own = std::max(own, before.clock);
    return all;
  }

  struct Run {
    Stamp first;
    std::int64_t last_number = 0, count = 0;
    double step = 0;
    Clock clock_step = 0;
    Spent kind = Spent::kCompute;
  };
  std::vector<Run> runs_;
  std::int64_t total_ = 0;
  std::uint16_t set_to_ = 0, value_before_ = 0;
  std::vector<User> users_;
};

}  // namespace reef::device

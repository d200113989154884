// SPDX-License-Identifier: Apache-2.0
// A counter as the program's order knows it: which signal brought it to which value, who waits, who has set it.
//
// Signals are numbered from 1 since the counter was last set; a wait for a value is a wait for the signal of a number
// (0 or less: for nothing). The chip compares 16 bits. A wait means what it should if, whenever it may be asked, the
// number it needs is at most 32,768 ahead of the counter and at most 32,767 behind.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "audit/clocks.h"
#include "audit/queue.h"
#include "isa/operation.h"

namespace reef::audit {

class CounterLog {
 public:
  static constexpr std::int64_t kMostAhead = 32768, kMostBehind = 32767;

  void begin(std::uint16_t value);
  std::uint16_t value() const { return static_cast<std::uint16_t>(set_to_ + static_cast<std::uint64_t>(total_)); }
  std::int64_t total() const { return total_; }
  bool has_reached(std::uint32_t needed) const { return isa::has_reached(value(), needed); }
  std::int64_t number_of(std::uint32_t needed) const {
    return total_ + static_cast<std::int16_t>(static_cast<std::uint16_t>(needed - value()));
  }

  // ---- Signals ----
  // The stamp of the last signal; its clock is 0 if there was none since the counter was set.
  const Stamp& last_signal() const { return last_; }
  void add(const Stamp& stamp, std::int64_t count);
  // The moment from which on the counter had `number` signals, from 1 to total(). False: too long ago to be remembered,
  // so that nothing can be said.
  bool find(std::int64_t number, Stamp& stamp) const;
  // Signals that lie behind an agent for certain.
  std::int64_t known_to(const Agent& agent) const;

  // ---- Waits ----
  // Waits of one agent, one after the other, at equal distances.
  struct Asked {
    int agent = 0;
    Clock clock = 0;          // at which the last one was asked; it is over one step later
    std::int64_t number = 0;  // that the last one needs
    std::int64_t count = 1;
    Clock clock_step = 0;
    std::int64_t number_step = 0;
    Clock first_clock() const { return clock - static_cast<Clock>(count - 1) * clock_step; }
    std::int64_t first_number() const { return number - (count - 1) * number_step; }
    std::int64_t least_number() const { return std::min(number, first_number()); }
  };
  void note_wait(const Agent& agent, std::int64_t number);
  // An agent whose wait `signaller` does not know to be over and the counter has left further behind than `lead`, and
  // when that was asked. Forgets waits that are known to be over. Agent -1: there is none.
  struct Outrun {
    int agent = -1;
    Clock clock = 0;
  };
  Outrun outrun(const Agent& signaller, std::int64_t lead);
  // The last waits of all agents, and earlier ones that are remembered.
  std::span<const Queue<Asked>> asked() const { return {asked_.data(), agents_that_asked_}; }

  // ---- Settings ----
  struct Setting {
    Stamp by;
    std::uint16_t value_before = 0;
  };
  void set(std::uint16_t value, const Stamp& by);
  // By the program: to another value, or to the one it has.
  bool is_set = false;
  // The value at which a wait of this number is fulfilled; 16 bits of it count.
  std::uint32_t value_of(std::int64_t number) const { return static_cast<std::uint32_t>(set_to_ + number); }
  // Newest first; those that are over for everybody may be left out.
  const std::vector<Setting>& settings() const { return settings_; }
  bool had_reached_when_set(std::uint32_t needed) const { return isa::has_reached(set_to_, needed); }

  // Somebody used the value from before the program.
  bool depends_on_before = false;
  std::uint16_t initial = 0;

  // ---- Whom to wake ----
  struct Sleeper {
    int actor = 0;
    std::int64_t number = 0;
  };
  std::vector<Sleeper> sleepers;

 private:
  // Signals one after the other by one agent who learned nothing between them, at equal distances.
  struct Run {
    Stamp first;
    std::int64_t last_number = 0, count = 0;
    Clock distance = 0;  // steps between two of them
    Clock last_clock() const { return first.clock + static_cast<Clock>(count - 1) * distance; }
  };
  // Bounds for programs that no compiler made; what is forgotten proves nothing.
  static constexpr std::size_t kMostRuns = 1 << 15, kMostAsked = 1 << 12, kMostSettings = 4;

  Queue<Run> runs_;
  mutable std::size_t found_last_ = 0;  // index in runs_, or beyond its end
  Stamp last_;
  std::int64_t total_ = 0;
  std::uint16_t set_to_ = 0;
  std::vector<Queue<Asked>> asked_;  // by agent that waited, in order; behind them empty ones that keep their memory
  std::size_t agents_that_asked_ = 0;
  std::vector<Setting> settings_;
};

}  // namespace reef::audit

// SPDX-License-Identifier: Apache-2.0
// How far waits let an instruction go, and what its signals count on the way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "isa/operation.h"

namespace reef::device {

// How a wait compares a counter with what it needs; the chip is believed to take the signed difference (beliefs.h).
enum class Comparison : std::uint8_t { kDifference, kUnsigned };

// The passes that a wait is asked at the beginning of.
struct WaitPasses {
  std::int64_t length = 1;  // positions
  std::int64_t count = 1;
};

inline WaitPasses passes_of(const isa::NestShape& nest, const isa::Wait& wait) {
  if (wait.level == 0) return {1, nest.size()};
  const std::int64_t length = nest.pass_length(wait.level);
  return {length, nest.unclipped_size() / length};
}

// The first of them that has not begun at a position; their count: all have.
inline std::int64_t next_pass(const WaitPasses& passes, std::int64_t position) {
  return std::min((position + passes.length - 1) / passes.length, passes.count);
}

// The value that the counter must have reached before a pass; 16 bits of it count.
inline std::uint32_t needed_before(const isa::Wait& wait, std::int64_t pass) {
  return static_cast<std::uint32_t>(wait.threshold) + wait.increment * static_cast<std::uint32_t>(pass);
}

// The first position at or after `position` that waits do not permit yet; the nest's size if they permit all of it.
// A pass that has begun is permitted to its end, whatever the counters do meanwhile.
inline std::int64_t permitted_end(const isa::NestShape& nest, std::span<const isa::Wait> waits,
                                  std::span<const std::uint16_t> counters, std::int64_t position,
                                  Comparison comparison = Comparison::kDifference) {
  std::int64_t end = nest.size();
  for (const isa::Wait& wait : waits) {
    const WaitPasses passes = passes_of(nest, wait);
    const std::int64_t pass = next_pass(passes, position);
    if (pass == passes.count) continue;
    if (wait.counter >= counters.size()) return position;  // a counter that does not exist is never reached
    const auto needed = static_cast<std::uint16_t>(needed_before(wait, pass));
    const int ahead = comparison == Comparison::kDifference
                          ? static_cast<std::int16_t>(static_cast<std::uint16_t>(counters[wait.counter] - needed))
                          : counters[wait.counter] - needed;
    std::int64_t permitted = pass;
    if (ahead >= 0)
      permitted = wait.increment == 0 ? passes.count : pass + ahead / static_cast<std::int64_t>(wait.increment) + 1;
    if (permitted < passes.count) end = std::min(end, permitted * passes.length);
  }
  return end;
}

// Passes of the signal's level that end between two positions.
inline std::int64_t signalled(const isa::Signal& signal, const isa::NestShape& nest, std::int64_t from,
                              std::int64_t to) {
  if (!signal.enabled) return 0;
  return nest.passes_before(to, signal.level) - nest.passes_before(from, signal.level);
}

}  // namespace reef::device

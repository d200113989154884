// SPDX-License-Identifier: Apache-2.0
// How far waits let an instruction go, and what its signals count on the way.
#pragma once

#include <cstdint>
#include <span>

#include "isa/operation.h"

namespace reef::device {

// The first position at or after `position` that waits do not permit yet; the nest's size if they permit all of it.
// A pass that has begun is permitted to its end, whatever the counters do meanwhile.
inline std::int64_t permitted_end(const isa::NestShape& nest, std::span<const isa::Wait> waits,
                                  std::span<const std::uint16_t> counters, std::int64_t position) {
  std::int64_t end = nest.size();
  for (const isa::Wait& wait : waits) {
    const std::int64_t length = nest.pass_length(wait.level);
    const std::int64_t passes = wait.level == 0 ? nest.size() : nest.unclipped_size() / length;
    const std::int64_t pass = (position + length - 1) / length;  // the first that has not begun
    if (pass >= passes) continue;                                // all have
    if (wait.counter >= counters.size()) return position;        // a counter that does not exist is never reached
    const auto needed = static_cast<std::uint32_t>(wait.threshold) + wait.increment * static_cast<std::uint32_t>(pass);
    const auto ahead = static_cast<std::int16_t>(static_cast<std::uint16_t>(counters[wait.counter] - needed));
    std::int64_t permitted = pass;
    if (ahead >= 0)
      permitted = wait.increment == 0 ? passes : pass + ahead / static_cast<std::int64_t>(wait.increment) + 1;
    if (permitted < passes) end = std::min(end, permitted * length);
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

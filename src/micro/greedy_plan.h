// SPDX-License-Identifier: Apache-2.0
// Where TFLite Micro puts its tensors: the largest first, each at the lowest place that is free while it lives.
//
// Sizes are predicted only if the places are: the same order (equal sizes: the last first) and the same gaps as those
// of its greedy planner. Buffers that a file places itself stand where it says, whatever is there already, and the
// others fill the gaps between them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace reef::micro {

struct PlannedBuffer {
  std::int64_t bytes = 0;                   // a multiple of the arena's alignment
  std::int32_t first = 0, last = 0;         // steps in which it lives, both included
  std::int64_t offset = 0;                  // the result
  std::optional<std::int64_t> placed = {};  // where the file wants it
};

// Fills in `offset`; returns the bytes that all of them take.
std::int64_t plan_greedily(std::vector<PlannedBuffer>& buffers);

}  // namespace reef::micro

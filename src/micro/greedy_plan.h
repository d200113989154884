// SPDX-License-Identifier: Apache-2.0
// Where TFLite Micro puts its tensors: the largest first, each at the lowest place that is free while it lives.
//
// Sizes are predicted only if the places are: the same order (equal sizes: the last first) and the same gaps as those
// of its greedy planner.
#pragma once

#include <cstdint>
#include <vector>

namespace reef::micro {

struct PlannedBuffer {
  std::int64_t bytes = 0;            // a multiple of the arena's alignment
  std::int32_t first = 0, last = 0;  // steps in which it lives, both included
  std::int64_t offset = 0;           // the result
};

// Fills in `offset`; returns the bytes that all of them take.
std::int64_t plan_greedily(std::vector<PlannedBuffer>& buffers);

}  // namespace reef::micro

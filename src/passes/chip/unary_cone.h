// SPDX-License-Identifier: Apache-2.0
// Groups of operators that together compute a function of one 8-bit tensor, element by element.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/chip/chip_graph.h"

namespace reef::passes {

// `y` is computed from `x` and constants of one value each by `ops` (ascending; the last computes y), and nothing else
// reads what they compute in between. x and y are 8-bit tensors of one shape; between them there may be others.
struct Cone {
  std::int32_t x = -1, y = -1;
  std::vector<std::int32_t> ops;
};

// All cones that end at operator `last` and have an operator that the chip cannot run, the largest first.
std::vector<Cone> cones_ending_at(const ChipGraph& edit, std::int32_t last);

// The largest group that begins with `inner` and goes on: also a function of inner.x alone, if one can be made of what
// reads inner.y. Nothing if inner.y is where the function ends.
std::optional<Cone> continuation(const ChipGraph& edit, const Cone& inner);

}  // namespace reef::passes

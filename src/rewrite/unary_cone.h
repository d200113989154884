// SPDX-License-Identifier: Apache-2.0
// Groups of operators that together compute a function of one 8-bit tensor, element by element.
#pragma once

#include <cstdint>
#include <vector>

#include "rewrite/graph_edit.h"

namespace reef::rewrite {

// `y` is computed from `x` and constants of one value each by `ops` (ascending; the last computes y), and nothing else
// reads what they compute in between. x and y are 8-bit tensors of one shape; between them there may be others.
struct Cone {
  std::int32_t x = -1, y = -1;
  std::vector<std::int32_t> ops;
};

// All cones that end at operator `last` and have an operator that the chip cannot run, the largest first.
std::vector<Cone> cones_ending_at(const GraphEdit& edit, std::int32_t last);

}  // namespace reef::rewrite

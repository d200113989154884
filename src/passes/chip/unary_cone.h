// SPDX-License-Identifier: Apache-2.0
// Groups of operators that together compute a function of one 8-bit tensor, element by element.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/chip/chip_graph.h"
#include "passes/chip/unary_function.h"

namespace reef::passes {

// `y` is computed from `x` and constants of one value each by `ops` (ascending; the last computes y), and nothing else
// reads what they compute in between. x and y are 8-bit tensors of one shape; between them there may be others.
struct Cone {
  std::int32_t x = -1, y = -1;
  std::vector<std::int32_t> ops;
};

struct ConeOptions {
  // Also cones whose operators all fit the chip, if there are several and one is LOGISTIC or TANH: each of them takes a
  // pass. Arithmetic alone is not taken: parts of a normalization belong to that.
  bool may_fit = false;
};
// All cones that end at operator `last` and have an operator that the chip cannot run, the largest first.
std::vector<Cone> cones_ending_at(const ChipGraph& edit, std::int32_t last, const ConeOptions& options = {});

// The largest group that begins with `inner` and goes on: also a function of inner.x alone, if one can be made of what
// reads inner.y. Nothing if inner.y is where the function ends.
std::optional<Cone> continuation(const ChipGraph& edit, const Cone& inner);

// Whether a step more or less in what the cone computes (`table`) is at most a step where the function that it is part
// of ends. In LOG(1 + EXP(x)), one step of EXP can be thirty.
bool is_tame(const ChipGraph& edit, const Cone& cone, const Cone& whole, const Table& table);

// Whether all operators fit that are in `whole` and not in `part`.
bool rest_fits(const ChipGraph& edit, const Cone& whole, const Cone& part);

}  // namespace reef::passes

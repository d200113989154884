// SPDX-License-Identifier: Apache-2.0
// Moving a TRANSPOSE from above an operator to below it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "passes/chip/chip_graph.h"

namespace reef::passes {

// The operator made to work on operands before their transposition: what it then computes, and the permutation that
// brings that into the form of the original's outputs.
struct Lowered {
  std::vector<std::int32_t> results;  // one for each output
  std::vector<int> permutation;       // of all of them
};

// `tensor`, an operand of `op`, is the result of a TRANSPOSE. Makes `op` anew in `list` so that no operand is
// transposed. Nothing if the operator does not allow it.
std::optional<Lowered> lower_past(ChipGraph& edit, OpList& list, std::int32_t op, std::int32_t tensor);

}  // namespace reef::passes

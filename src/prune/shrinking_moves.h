// SPDX-License-Identifier: Apache-2.0
// Operators whose operands hold sizes or positions along an axis that became shorter.
#pragma once

#include "base/status.h"
#include "ir/model.h"
#include "prune/moved_axes.h"

namespace reef::prune {

// Whether indices of this axis can be removed and the operator still says what it did, perhaps after adapt_sizes.
bool adapts_to_shrinking(const ir::Model& model, const ir::Operator& op, const MovedAxis& moved);

// Which indices of each axis stay: [tensor][axis][index].
using KeptIndices = std::vector<std::vector<std::vector<bool>>>;

// Makes the operands and attributes of operator `op` of `after`, whose tensors have their new shapes already, say the
// new sizes. `before` is the model with the old ones.
Status adapt_sizes(const ir::Model& before, const KeptIndices& kept, std::size_t op, ir::Model& after);

}  // namespace reef::prune

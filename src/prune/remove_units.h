// SPDX-License-Identifier: Apache-2.0
// A model without some of its units (axes.h): smaller weights, smaller activations, the same operators.
#pragma once

#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "prune/axes.h"
#include "prune/shrinking_moves.h"

namespace reef::prune {

// Which indices stay when the units `removed` (true, by number) go.
KeptIndices kept_indices(const ir::Model& model, const Axes& axes, const std::vector<bool>& removed);

// `axes` must be those of `model`. Operators and tensors keep their numbers; constants that hold sizes are added at the
// end. Fails, naming the operator, if the shapes that the operators infer are not those that removing indices gives.
Result<ir::Model> remove_units(const ir::Model& model, const KeptIndices& kept);

// Numbers of the indices that stay.
std::vector<std::size_t> numbers_of(const std::vector<bool>& kept);

}  // namespace reef::prune

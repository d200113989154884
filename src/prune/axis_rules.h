// SPDX-License-Identifier: Apache-2.0
// Tells `Axes` how each operator relates the axes of its tensors (axis_rules.def).
#pragma once

#include "ir/model.h"
#include "prune/axes.h"

namespace reef::prune {

void apply_axis_rules(const ir::Model& model, HeadUnits heads, Axes& axes);

}  // namespace reef::prune

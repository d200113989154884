// SPDX-License-Identifier: Apache-2.0
// What each operator does to the axes of its tensors (axis_rules.def), told to `Axes`.
#pragma once

#include "ir/model.h"
#include "prune/axes.h"

namespace reef::prune {

void apply_axis_rules(const ir::Model& model, HeadUnits heads, Axes& axes);

}  // namespace reef::prune

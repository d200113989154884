// SPDX-License-Identifier: Apache-2.0
// How much work one run of a model is, about: decides on how many samples something can be tried. By counting, not by
// the clock, so that the same model and samples give the same result on any machine.
#pragma once

#include "ir/model.h"

namespace reef::quantize {

// Products and sums of the first subgraph's layers, and a few for each element that anything else computes.
double work_of(const ir::Model& model);
// Of one operator of it.
double work_of(const ir::Model& model, const ir::Operator& op);

}  // namespace reef::quantize

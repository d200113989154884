// SPDX-License-Identifier: Apache-2.0
// Sparse constants written out.
//
// A TFLite file may store weights that are mostly zero as their other elements and where those stand (one dimension
// after the other, dense or compressed, perhaps in blocks). TFLite writes them out before it computes, by DENSIFY or in
// the kernel. Reef does so once, when a model enters: nothing behind that has to know of sparse tensors.
#pragma once

#include "base/budget.h"
#include "base/status.h"
#include "ir/model.h"

namespace reef::ir {

// Replaces every sparse constant by a dense one. `model` must be verified, and stays so. Fails where elements, indices
// and shape contradict each other.
Status densify(Model& model, const Budget& budget = {});

}  // namespace reef::ir

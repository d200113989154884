// SPDX-License-Identifier: Apache-2.0
// Operators that Reef makes for the chip (ReefFunction), written out in operators that any TFLite runs.
#pragma once

#include "base/status.h"
#include "ir/model.h"

namespace reef::graph {

// Puts CAST, ADD and GATHER, which look up the same 256 results, in the place of each ReefFunction of subgraph 0. For
// models that are about to be saved; those without such an operator are not touched.
Status write_out_functions(ir::Model& model);

}  // namespace reef::graph

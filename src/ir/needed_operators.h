// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/model.h"

namespace reef::ir {

// For each operator, whether an output of the graph depends on it or it has no results at all.
std::vector<bool> needed_operators(const Subgraph& graph);

}  // namespace reef::ir

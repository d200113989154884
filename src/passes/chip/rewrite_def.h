// SPDX-License-Identifier: Apache-2.0
// Rewrite: one entry of rewrites.def.
//
// rewrite/<name>.cpp defines `constinit const Rewrite <name>_rewrite = {...}` and rewrites.def lists it.
#pragma once

#include <cstdint>

#include "passes/chip/graph_edit.h"
#include "passes/chip/rewrite.h"

namespace reef::rewrite {

struct Rewrite {
  RewriteInfo info;
  // Exactly one of the two is given. Both return whether the graph changed, and must not find their own work again.
  bool (*at)(GraphEdit&, std::int32_t op) = nullptr;  // looks at one operator
  bool (*whole)(GraphEdit&) = nullptr;                // looks at all of subgraph 0
};

}  // namespace reef::rewrite

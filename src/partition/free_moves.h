// SPDX-License-Identifier: Apache-2.0
// Movements that cost nothing, because the code generator reads and writes around them.
#pragma once

#include <vector>

#include "ir/model.h"

namespace reef::partition {

// For each operator of subgraph 0, whether it only cuts a layer's result into attention's heads, or joins them:
// products read the channels of a head where the layer in front wrote them, and write where the layer behind reads
// (docs/codegen.md, "Products of two activations, and attention"). It is found by how operators are connected; where
// elements come from is not looked at, so that a few movements that are needed after all are taken for free.
std::vector<bool> moves_of_attention(const ir::Model& model);

}  // namespace reef::partition

// SPDX-License-Identifier: Apache-2.0
// Roles of layers in a transformer, so that `reef compare` can say where such a network loses accuracy.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ir/model.h"

namespace reef::evaluate {

enum class Role : std::uint8_t {
  kOther,
  kScores,         // products of queries and keys, and what is done with them in front of a SOFTMAX
  kWeights,        // SOFTMAX whose result multiplies values
  kAverages,       // products of these weights and values
  kNormalization,  // means, squares, roots and products of LayerNorm and RMSNorm
  kResidualSum,    // sums of what went around a block and what came through it
  kActivation,     // the function between the two layers of a block
};
std::string_view to_string(Role role);  // "attention scores"

// The role of each operator of subgraph 0. Networks without attention have none: all are kOther.
std::vector<Role> transformer_roles(const ir::Model& model);

}  // namespace reef::evaluate

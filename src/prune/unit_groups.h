// SPDX-License-Identifier: Apache-2.0
// Units that do the same work beside each other: the channels of a layer or of a residual stream, the hidden units of
// an MLP, the heads of an attention. Pruning decides how many of a group stay, and which.
#pragma once

#include <string>
#include <vector>

#include "ir/model.h"
#include "prune/axes.h"
#include "prune/linear_layer.h"

namespace reef::prune {

struct UnitGroup {
  std::vector<std::int32_t> units;                // ascending
  std::vector<std::size_t> producers, consumers;  // layers (numbers in the list of layers) that compute and read them
  std::string name;                               // of the first result
  std::int64_t channels_each = 1;                 // of one unit, beside each other in the first producer
};

// Units that no layer computes are left out, and so are groups of one.
std::vector<UnitGroup> unit_groups(const ir::Model& model, const Axes& axes, const std::vector<LinearLayer>& layers);

// The rows' columns of a layer that belong to a unit, for each of `units`. Empty for depthwise layers, which compute
// every channel from itself.
std::vector<std::vector<std::size_t>> columns_of(const LinearLayer& layer, const Axes& axes,
                                                 const std::vector<std::int32_t>& units);

}  // namespace reef::prune

// SPDX-License-Identifier: Apache-2.0
// Shapes of an operator's results outside of an interpreter, for stages that change a model without running it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/model.h"

namespace reef::ops {

// From the shapes that subgraph `subgraph` gives for the operands, and from the values of those that `is_constant`
// names. nullopt: they depend on other values, the op is not known, keeps a state or refuses its operands.
std::optional<std::vector<ir::Shape>> inferred_shapes(const ir::Model& model, std::size_t subgraph,
                                                      const ir::Operator& op,
                                                      const std::function<bool(std::int32_t)>& is_constant);

}  // namespace reef::ops

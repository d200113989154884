// SPDX-License-Identifier: Apache-2.0
// The function of real numbers that a group of operators stands for.
#pragma once

#include <optional>
#include <vector>

#include "passes/chip/unary_cone.h"

namespace reef::passes {

// Results of the cone's operators, as real numbers, for all 256 values of cone.x from the lowest to the highest, with
// everything in between in float32: what the operators would compute if nothing between cone.x and cone.y were rounded.
// A table for the chip is fitted to these; the rounded results of the model's own operators are a staircase. Nothing
// where the operators do not run in float32.
std::optional<std::vector<double>> real_values(const ChipGraph& edit, const Cone& cone);

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// Single weights of a layer set to zero, and the others fitted again.
#pragma once

#include "prune/normal_equations.h"

namespace reef::prune {

// Weights near `dense` of which `share` are zero in every column of the layer's matrix together (the bias is not
// counted), with little error on the rows of `equations`.
Matrix sparse_solution(const NormalEquations& equations, const Matrix& dense, double share, bool has_bias);

}  // namespace reef::prune

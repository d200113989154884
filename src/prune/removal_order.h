// SPDX-License-Identifier: Apache-2.0
// The order in which units of a group are best removed.
//
// Removing inputs of a layer changes its results by what the remaining inputs cannot make up for when the weights are
// fitted again. For one more input, on top of those removed before, this error has a closed form (optimal brain
// surgeon): with H the sum of squares of the inputs and w their weights, removing the set S costs
// w_S^T (H^-1_SS)^-1 w_S. The unit with the least error, summed over all layers that read it and relative to the power
// of their results, goes next.
#pragma once

#include <cstdint>
#include <vector>

#include "prune/matrix.h"

namespace reef::prune {

// A layer (one group of it) that reads the units.
struct Reader {
  Matrix gram;                                    // of its inputs, around their means
  Matrix weights;                                 // a row for each input
  std::vector<std::vector<std::size_t>> columns;  // of each unit
};

// Numbers of units, first those that are missed least. All but one of them are ordered; that one comes last.
std::vector<std::size_t> removal_order(std::vector<Reader> readers, std::size_t units);

}  // namespace reef::prune

// SPDX-License-Identifier: Apache-2.0
// The part of leading_axes.cpp that moves elements: repeated, cut and padded tensors of many dimensions.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/chip/chip_graph.h"

namespace reef::passes {

// Dimensions, beside a batch of 1, that the chip takes.
inline constexpr int kMostGroups = 3;

// The operator with its results as new tensors of the given shapes, which are then reshaped to what they were.
bool replace_on_fewer(ChipGraph& edit, std::int32_t index, OpList& list, ir::Operator op,
                      const std::vector<ir::Shape>& results);

// TILE and BROADCAST_TO, SLICE and STRIDED_SLICE without gaps, PAD. False: it stays as it is.
bool tile_on_fewer(ChipGraph& edit, std::int32_t index);
bool slice_on_fewer(ChipGraph& edit, std::int32_t index);
bool pad_on_fewer(ChipGraph& edit, std::int32_t index);

}  // namespace reef::passes

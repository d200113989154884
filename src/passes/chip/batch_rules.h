// SPDX-License-Identifier: Apache-2.0
// Which operators treat the images of a batch alike and apart, and how one image's operator looks.
#pragma once

#include <cstdint>

#include "passes/chip/chip_graph.h"

namespace reef::passes {

// Dimension 0 of every computed operand and result is the batch, of size `batch`, and each image's results depend on
// that image alone.
bool is_batch_parallel(const ChipGraph& edit, std::int32_t op, std::int32_t batch);

// The operator for one image, as `op` of the graph but with these operands (-1 where the original's is constant or
// left out: those are seen to here) and results. Precondition: is_batch_parallel.
void add_for_one_image(ChipGraph& edit, OpList& list, const ir::Operator& op, std::vector<std::int32_t> inputs,
                       std::vector<std::int32_t> outputs);

}  // namespace reef::passes

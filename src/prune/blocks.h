// SPDX-License-Identifier: Apache-2.0
// Whole residual blocks: what stands beside a stream, reads nothing but the stream, and is added to it. Without such a
// block the stream goes on as it is, plus what the block adds on average.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/model.h"
#include "prune/remove_units.h"

namespace reef::prune {

struct Block {
  std::size_t sum = 0;                    // the ADD
  std::int32_t stream = -1, branch = -1;  // its operands
  std::vector<std::size_t> ops;           // of the branch, ascending
  std::vector<float> mean;                // of the branch, by channel; gathered by whoever runs the model
};

// Blocks with at least one layer, in the order of their sums. `model` must be verified.
std::vector<Block> find_blocks(const ir::Model& model);

// Replaces the branch by its mean. Operators keep their numbers; those of the branch are left, and nobody reads them.
// `kept`: which channels of the original are left in `model`.
void remove_block(const Block& block, const KeptIndices& kept, ir::Model& model);

// Takes out operators that no result depends on, and tensors and buffers that nothing uses.
void drop_unneeded(ir::Model& model);

}  // namespace reef::prune

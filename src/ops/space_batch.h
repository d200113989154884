// SPDX-License-Identifier: Apache-2.0
// The exchange of blocks of space with batches, shared by SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND.
//
// A block has one element for each `shift` in [0, block_shape), and each shift has its own group of batches:
//   blocks[shift * N + n, i..., c] = whole[n, i * block_shape + shift - margin..., c]
// where N is the number of batches of `whole` and the shifts are numbered row by row. Elements of `blocks` whose place
// in `whole` is outside belong to the margins: padding on the way there, cropped on the way back.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ops/movement.h"

namespace reef::ops {

struct Blocks {
  std::vector<std::int64_t> sizes;    // of a block, one per spatial dimension, each at least 1
  std::vector<std::int64_t> margins;  // before and behind each spatial dimension, none negative
};

// Reads and checks inputs 1 and 2 of either op.
Result<Blocks> blocks_of(const OpContext& ctx);

// Copies between a tensor of shape `whole` and one of shape `blocks`, in the direction asked for.
enum class BlockDirection { kToBlocks, kToWhole };
Status copy_blocks(RunContext& ctx, const Blocks& blocks, const Shape& whole_shape, const Shape& blocks_shape,
                   BlockDirection direction);

}  // namespace reef::ops

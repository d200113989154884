// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// Adds the step, for an operator that is made of weighted sums. All tensors lie over the tiles in the same way. Where
// sum.wide_results is an object, its size is set when tensors are cut.
void add_sum_step(Builder& builder, std::int32_t op, const tiled::Sum& sum);

// A new tensor for the operator's result, spread over the tiles as `like` is.
Result<std::int32_t> new_result(Builder& builder, std::int32_t op, std::int32_t like);

// Of a tensor that is cut: bytes of the pixels that a tile owns, each of whole words, in the tile that has most.
std::int64_t most_own_bytes(const tiled::TiledTensor& tensor);

}  // namespace reef::lower

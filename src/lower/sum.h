// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// The numbers of ADD, SUB or SQUARED_DIFFERENCE of tensors that are quantized like these.
Result<tiled::WeightedSum> weighted_sum(const ir::Operator& op, const tiled::TiledTensor& a,
                                        const tiled::TiledTensor& b, const tiled::TiledTensor& out);

// Adds the step, for an operator that is made of weighted sums. All tensors lie over the tiles in the same way.
void add_sum_step(Builder& builder, std::int32_t op, const tiled::Sum& sum);

// A new tensor for the operator's result, spread over the tiles as `like` is.
Result<std::int32_t> new_result(Builder& builder, std::int32_t op, std::int32_t like);

}  // namespace reef::lower

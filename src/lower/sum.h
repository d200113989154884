// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lower/builder.h"

namespace reef::lower {

// Adds the step, for an operator that is made of weighted sums. All tensors lie over the tiles in the same way.
void add_sum_step(Builder& builder, std::int32_t op, const tiled::Sum& sum);

}  // namespace reef::lower

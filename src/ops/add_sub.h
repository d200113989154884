// SPDX-License-Identifier: Apache-2.0
// ADD and SUB: one arithmetic with two signs.
#pragma once

#include "base/status.h"
#include "ops/op_context.h"

namespace reef::ops {

enum class SumSign { kPlus, kMinus };

// Kernel of input 0 plus or minus input 1, for every type but those that only one of the two ops has.
Result<Kernel> prepare_sum(PrepareContext& ctx, SumSign sign);

}  // namespace reef::ops

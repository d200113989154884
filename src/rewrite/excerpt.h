// SPDX-License-Identifier: Apache-2.0
// Some operators as a model of their own, to judge or to compute them.
#pragma once

#include <cstdint>
#include <span>

#include "ir/model.h"

namespace reef::rewrite {

// Operands are tensors of subgraph 0 of `model`, whose operators need not be among these. Inputs are what none of them
// computes before it is read and the file does not hold, in the order of use; `outputs` is what the model returns.
ir::Model excerpt(const ir::Model& model, std::span<const ir::Operator> operators,
                  std::span<const std::int32_t> outputs = {});

}  // namespace reef::rewrite

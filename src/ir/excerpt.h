// SPDX-License-Identifier: Apache-2.0
// Some operators as a model of their own, to judge or to compute them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ir/model.h"

namespace reef::ir {

// Operands are tensors of `subgraph` of `model`, whose operators need not be among these. Inputs are what none of them
// computes before it is read and the file does not hold, in the order of use, behind `given`, which are inputs in any
// case; `outputs` is what the model returns. What one of the operators computes is computed, even where `model` holds a
// value for it. Constants share their bytes with `model`. Other subgraphs are left behind: control flow cannot be
// excerpted.
Model excerpt(const Model& model, std::span<const Operator> operators, std::span<const std::int32_t> outputs = {},
              std::size_t subgraph = 0, std::span<const std::int32_t> given = {});

}  // namespace reef::ir

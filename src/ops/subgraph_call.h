// SPDX-License-Identifier: Apache-2.0
// Shared by the control-flow ops: what passes between a subgraph and its caller.
#pragma once

#include <span>
#include <vector>

#include "ops/op_context.h"

namespace reef::ops {

// Inputs [first, count) of an op, as arguments of a subgraph. All must be present.
Result<std::vector<const Tensor*>> call_arguments(const OpContext& ctx, int first);

// A subgraph index from an attribute, checked to be one the model has and not the main one.
Result<std::int32_t> subgraph_attribute(const OpContext& ctx, std::string_view name);

// Copies results of a subgraph into the op's outputs, giving these the results' shapes.
Status store_results(RunContext& ctx, std::span<const OwnedTensor> results);

// Views of owned tensors, for passing them on as arguments.
std::vector<Tensor> as_views(std::span<OwnedTensor> owned);

}  // namespace reef::ops

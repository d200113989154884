// SPDX-License-Identifier: Apache-2.0
// Shared by NON_MAX_SUPPRESSION_V4 and _V5: shapes and the search, as TFLite's reference kernels do it.
#pragma once

#include "base/status.h"
#include "ops/op_context.h"

namespace reef::ops {

// Indices (and scores) of the largest number of boxes that may be chosen, and how many were.
Status infer_non_max_suppression(InferContext& ctx);

// `is_soft`: a sixth input gives sigma, and the scores that were left are an output of their own.
Result<Kernel> prepare_non_max_suppression(PrepareContext& ctx, bool is_soft);

}  // namespace reef::ops

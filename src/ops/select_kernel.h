// SPDX-License-Identifier: Apache-2.0
// Shared by SELECT and SELECT_V2: copying elements of one of two inputs as a condition says.
#pragma once

#include "base/status.h"
#include "ir/shape.h"
#include "ops/op_context.h"

namespace reef::ops {

// TFLite keeps the file's output shape when condition, both inputs and output have one element each, whatever their
// ranks. True in that case, where inference has nothing to do.
bool keeps_declared_shape(const OpContext& ctx);

// Checks types; `condition_shape` is the shape that the condition broadcasts with.
Result<Kernel> prepare_select(PrepareContext& ctx, const Shape& condition_shape);

}  // namespace reef::ops

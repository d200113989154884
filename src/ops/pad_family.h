// SPDX-License-Identifier: Apache-2.0
// PAD and PADV2: surround a tensor with a constant. One kernel, as in TFLite, which tells them apart by input 2 alone.
#pragma once

#include "ops/op_context.h"

namespace reef::ops {

Status infer_pad(InferContext& ctx);
Result<Kernel> prepare_pad(PrepareContext& ctx);

}  // namespace reef::ops

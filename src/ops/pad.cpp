// SPDX-License-Identifier: Apache-2.0
// PAD: input 1 is a [rank, 2] table of how many zeros to put before and behind each dimension. In quantized tensors a
// zero is the output's zero point. TFLite lets PAD carry a value as PADV2 does.
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/pad_family.h"

namespace reef::ops {

extern const OpDef pad_op;
constinit const OpDef pad_op = define({.name = "PAD",
                                       .summary = "Surrounds a tensor with zeros.",
                                       .inputs = {2, 3},
                                       .types = kWholeByteTypes,
                                       .infer = infer_pad,
                                       .prepare = prepare_pad});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// PADV2: PAD with the value of input 2, which must be quantized as the output is.
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/pad_family.h"

namespace reef::ops {

constinit const OpDef padv2_op = define(
    {.name = name_of(Op::PADV2),
     .summary = "Surrounds a tensor with a given value.",
     .inputs = {2, 3},
     .types = kWholeByteTypes,
     .form = Form::kMove,
     .traits = trait_set({Trait::kCopiesOperands}),
     .infer = infer_pad,
     .prepare = prepare_pad,
     .chip = {
         .instead = "Pad with zeros (PAD); with the lowest value before a MAX_POOL_2D, use the padding of the pool.",
         .rewrite = "pad-v2"}});

}  // namespace reef::ops

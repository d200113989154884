// SPDX-License-Identifier: Apache-2.0
// RELU_0_TO_1: x clamped to [0, 1]; quantized tensors are requantized on the way.
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef relu_0_to_1_op =
    define({.name = name_of(Op::RELU_0_TO_1),
            .summary = "x clamped to [0, 1].",
            .types = "float32; int8; uint8",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kNeverNegative}),
            .prepare = [](PrepareContext& ctx) { return prepare_relu(ctx, {.low = 0, .high = 1, .int16_too = false}); },
            .chip = {.instead = "Use RELU6 or RELU_N1_TO_1, or MINIMUM and MAXIMUM with constants."}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// RELU6: x clamped to [0, 6]; quantized tensors are requantized on the way.
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef relu6_op =
    define({.name = name_of(Op::RELU6),
            .summary = "x clamped to [0, 6].",
            .types = "float32; int8; uint8; int16",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kNeverNegative}),
            .prepare = [](PrepareContext& ctx) { return prepare_relu(ctx, {.low = 0, .high = 6, .int16_too = true}); },
            .chip = {.first_runtime = 10}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// RELU_N1_TO_1: x clamped to [-1, 1]; quantized tensors are requantized on the way.
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef relu_n1_to_1_op = define(
    {.name = name_of(Op::RELU_N1_TO_1),
     .summary = "x clamped to [-1, 1].",
     .types = "float32; int8; uint8",
     .form = Form::kUnary,
     .traits = trait_set({Trait::kKeepsNonNegative}),
     .prepare = [](PrepareContext& ctx) { return prepare_relu(ctx, {.low = -1, .high = 1, .int16_too = false}); },
     .chip = {.first_runtime = 10}});

}  // namespace reef::ops

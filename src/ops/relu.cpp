// SPDX-License-Identifier: Apache-2.0
// RELU: max(x, 0); quantized tensors are requantized on the way.
#include <limits>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef relu_op = define(
    {.name = name_of(Op::RELU),
     .summary = "max(x, 0).",
     .types = "float32; int8; uint8; int16",
     .form = Form::kUnary,
     .traits = trait_set({Trait::kNeverNegative, Trait::kScalesByChannel}),
     .prepare =
         [](PrepareContext& ctx) {
           return prepare_relu(ctx, {.low = 0, .high = std::numeric_limits<float>::infinity(), .int16_too = true});
         },
     .chip = {.first_runtime = 10}});

}  // namespace reef::ops

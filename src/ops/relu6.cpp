// SPDX-License-Identifier: Apache-2.0
// RELU6: x clamped to [0, 6]; quantized tensors are requantized on the way.
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "int8", "uint8", "int16"};

Result<Kernel> prepare(PrepareContext& ctx) { return prepare_relu(ctx, {.low = 0, .high = 6, .int16_too = true}); }

}  // namespace

constinit const OpDef relu6_op = define({.name = name_of(Op::RELU6),
                                         .summary = "x clamped to [0, 6].",
                                         .types = kTypes,
                                         .elementwise = input_set({0}),
                                         .form = Form::kUnary,
                                         .traits = trait_set({Trait::kNeverNegative}),
                                         .infer = infer_same_shape,
                                         .prepare = prepare,
                                         .chip = {.first_runtime = 10}});

}  // namespace reef::ops

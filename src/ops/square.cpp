// SPDX-License-Identifier: Apache-2.0
// SQUARE: x * x.
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef square_op =
    define({.name = name_of(Op::SQUARE),
            .summary = "Square.",
            .types = "float32",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kNeverNegative}),
            .prepare = [](PrepareContext& ctx) { return prepare_float_map(ctx, false, [](float x) { return x * x; }); },
            .chip = {.instead = "Use MUL of the input with itself."}});

}  // namespace reef::ops

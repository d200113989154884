// SPDX-License-Identifier: Apache-2.0
// SIN: sine, in radians.
#include <cmath>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef sin_op = define(
    {.name = name_of(Op::SIN),
     .summary = "Sine.",
     .types = "float32; float16",
     .form = Form::kUnary,
     .prepare = [](PrepareContext& ctx) { return prepare_float_map(ctx, true, [](float x) { return std::sin(x); }); },
     .chip = {.instead = "Compute it on the CPU, or from a table that the model is given as input."}});

}  // namespace reef::ops

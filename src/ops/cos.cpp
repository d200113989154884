// SPDX-License-Identifier: Apache-2.0
// COS: cosine, in radians.
#include <cmath>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef cos_op = define(
    {.name = name_of(Op::COS),
     .summary = "Cosine.",
     .types = "float32; float16",
     .form = Form::kUnary,
     .prepare = [](PrepareContext& ctx) { return prepare_float_map(ctx, true, [](float x) { return std::cos(x); }); },
     .chip = {.instead = "Compute it on the CPU, or from a table that the model is given as input."}});

}  // namespace reef::ops

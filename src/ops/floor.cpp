// SPDX-License-Identifier: Apache-2.0
// FLOOR: the largest integer not above x.
#include <cmath>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {

constinit const OpDef floor_op = define(
    {.name = name_of(Op::FLOOR),
     .summary = "Rounds down.",
     .types = "float32; float16",
     .form = Form::kUnary,
     .traits = trait_set({Trait::kKeepsNonNegative}),
     .prepare = [](PrepareContext& ctx) { return prepare_float_map(ctx, true, [](float x) { return std::floor(x); }); },
     .chip = {.instead = "Quantized values have no use for it: leave it out, or do it on the CPU behind the model."}});

}  // namespace reef::ops

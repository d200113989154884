// SPDX-License-Identifier: Apache-2.0
// SIN: sine, in radians.
#include <cmath>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "float16"};

Result<Kernel> prepare(PrepareContext& ctx) {
  return prepare_float_map(ctx, true, [](float x) { return std::sin(x); });
}

}  // namespace

constinit const OpDef sin_op =
    define({.name = name_of(Op::SIN),
            .summary = "Sine.",
            .types = kTypes,
            .elementwise = input_set({0}),
            .form = Form::kUnary,
            .infer = infer_same_shape,
            .prepare = prepare,
            .chip = {.instead = "Compute it on the CPU, or from a table that the model is given as input."}});

}  // namespace reef::ops

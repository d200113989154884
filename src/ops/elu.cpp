// SPDX-License-Identifier: Apache-2.0
// ELU: x where x >= 0, exp(x) - 1 below. int8 by table.
#include <cmath>

#include "kernels/elementwise/float_functions.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

float elu_elu(float x) { return x < 0.0f ? std::expm1(x) : x; }

Result<Kernel> elu_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ctx.input(0).type == DataType::kFloat32) return float_function_kernel(kernels::elus);
  if (ctx.input(0).type == DataType::kInt8) return table8_kernel<std::int8_t>(ctx, elu_elu);
  return unsupported_types(ctx);
}

}  // namespace

constinit const OpDef elu_op = define({.name = name_of(Op::ELU),
                                       .summary = "Exponential linear unit.",
                                       .types = "float32; int8",
                                       .form = Form::kUnary,
                                       .traits = trait_set({Trait::kKeepsNonNegative}),
                                       .prepare = elu_prepare,
                                       .chip = {.instead = "Use RELU or PRELU when training.", .rewrite = "elu"}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// EXP: e^x. int8 and int16 by table.
#include <cmath>

#include "kernels/elementwise/float_functions.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> exp_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const auto exponential = [](float x) { return std::exp(x); };
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return float_function_kernel(kernels::exponentials);
    case DataType::kInt8:
      return table8_kernel<std::int8_t>(ctx, exponential);
    case DataType::kInt16:
      return table16_kernel(ctx, exponential);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef exp_op =
    define({.name = name_of(Op::EXP),
            .summary = "Exponential.",
            .types = "float32; int8; int16",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kNeverNegative}),
            .prepare = exp_prepare,
            .chip = {.instead = "Use SOFTMAX or LOGISTIC where that is meant.", .rewrite = "unary"}});

}  // namespace reef::ops

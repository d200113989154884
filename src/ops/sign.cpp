// SPDX-License-Identifier: Apache-2.0
// SIGN: -1, 0 or 1; NaN stays NaN and -0 becomes 0.

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

template <typename T>
T sign(T x) {
  if (x > 0) return 1;
  if (x < 0) return -1;
  return x == 0 ? T{0} : x;
}

Result<Kernel> sign_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return for_element_type<float, double, std::int32_t>(ctx, ctx.input(0).type,
                                                       []<typename T>() { return map_kernel<T, T>(sign<T>); });
}

}  // namespace

constinit const OpDef sign_op = define({.name = name_of(Op::SIGN),
                                        .summary = "Sign: -1, 0 or 1.",
                                        .types = "float32; float64; int32",
                                        .form = Form::kUnary,
                                        .prepare = sign_prepare,
                                        .chip = {.instead = "Use a steep LOGISTIC or TANH."}});

}  // namespace reef::ops

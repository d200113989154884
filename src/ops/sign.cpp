// SPDX-License-Identifier: Apache-2.0
// SIGN: -1, 0 or 1; NaN stays NaN and -0 becomes 0.

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr std::string_view kTypes[] = {"float32", "float64", "int32"};

template <typename T>
T sign(T x) {
  if (x > 0) return 1;
  if (x < 0) return -1;
  return x == 0 ? T{0} : x;
}

Result<Kernel> prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return map_kernel<float, float>(sign<float>);
    case DataType::kFloat64:
      return map_kernel<double, double>(sign<double>);
    case DataType::kInt32:
      return map_kernel<std::int32_t, std::int32_t>(sign<std::int32_t>);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef sign_op = define({.name = name_of(Op::SIGN),
                                        .summary = "Sign: -1, 0 or 1.",
                                        .types = kTypes,
                                        .elementwise = input_set({0}),
                                        .form = Form::kUnary,
                                        .infer = infer_same_shape,
                                        .prepare = prepare,
                                        .chip = {.instead = "Use a steep LOGISTIC or TANH."}});

}  // namespace reef::ops

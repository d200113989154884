// SPDX-License-Identifier: Apache-2.0
// LOG: natural logarithm. int8 and int16 by table, in which everything not positive gives the lowest output.
#include <cmath>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> log_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const DataType type = ctx.input(0).type;
  if (type == DataType::kFloat32) return map_kernel<float, float>([](float x) { return std::log(x); });
  if (type != DataType::kInt8 && type != DataType::kInt16) return unsupported_types(ctx);
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  const float lowest = static_cast<float>(type_range(type).min - q.output.zero_point) * q.output.scale;
  const auto logarithm = [lowest](float x) { return x <= 0.0f ? lowest : std::log(x); };
  if (type == DataType::kInt8) return table8_kernel<std::int8_t>(ctx, logarithm);
  REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  return table16_kernel(ctx, logarithm);
}

}  // namespace

constinit const OpDef log_op =
    define({.name = name_of(Op::LOG),
            .summary = "Natural logarithm.",
            .types = "float32; int8; int16",
            .form = Form::kUnary,
            .prepare = log_prepare,
            .chip = {.instead = "End the model before it, or train with a loss that takes the logarithm itself.",
                     .rewrite = "unary"}});

}  // namespace reef::ops

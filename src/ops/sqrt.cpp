// SPDX-License-Identifier: Apache-2.0
// SQRT: square root. Quantized tensors go through float and are truncated, not rounded; a negative input fails while
// running. Both as in TFLite.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/elementwise/float_functions.h"
#include "numeric/fixed_point.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

template <typename T>
Result<Kernel> quantized_sqrt(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  if constexpr (sizeof(T) == 2) REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  const Kernel map = map_kernel<T, T>([=](T x) {
    const float root = std::sqrt(q.input.scale * static_cast<float>(x - q.input.zero_point));
    const std::int32_t quantized = numeric::truncate_to_int32(root / q.output.scale);
    return numeric::saturate<T>(numeric::wrapping_add(quantized, q.output.zero_point));
  });
  return Kernel([map, zero_point = q.input.zero_point](RunContext& run) {
    const auto values = run.input(0).values<T>();
    const bool negative = std::any_of(values.begin(), values.end(), [&](T x) { return x < zero_point; });
    REEF_REQUIRE(!negative, "the input has negative values; SQRT is defined for zero and above");
    return map(run);
  });
}

Result<Kernel> sqrt_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return float_function_kernel(kernels::square_roots);
    case DataType::kInt8:
      return quantized_sqrt<std::int8_t>(ctx);
    case DataType::kInt16:
      return quantized_sqrt<std::int16_t>(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef sqrt_op = define({.name = name_of(Op::SQRT),
                                        .summary = "Square root.",
                                        .types = "float32; int8; int16",
                                        .form = Form::kUnary,
                                        .traits = trait_set({Trait::kNeverNegative}),
                                        .prepare = sqrt_prepare,
                                        .chip = {.instead = "Use x * RSQRT(x).", .rewrite = "unary"}});

}  // namespace reef::ops

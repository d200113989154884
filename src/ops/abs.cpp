// SPDX-License-Identifier: Apache-2.0
// ABS: magnitude. Quantized int8 and int16 are requantized; int16 without quantization is a plain number, as is int32.
// The lowest plain integer is its own magnitude.
#include <cmath>
#include <cstdint>

#include "numeric/fixed_point.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

template <typename T>
T plain_magnitude(T x) {
  return x < 0 ? static_cast<T>(0u - static_cast<std::uint32_t>(x)) : x;
}

template <typename T>
Result<Kernel> quantized_abs(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  if constexpr (sizeof(T) == 2) REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  const bool rescale = q.input.scale != q.output.scale;
  const numeric::Multiplier factor = numeric::make_multiplier(q.input.scale / q.output.scale);
  return map_kernel<T, T>([=](T x) {
    const std::int32_t magnitude = std::abs(x - q.input.zero_point);
    const std::int32_t scaled = rescale ? numeric::multiply(magnitude, factor) : magnitude;
    return numeric::saturate<T>(numeric::wrapping_add(scaled, q.output.zero_point));
  });
}

Result<Kernel> abs_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return map_kernel<float, float>([](float x) { return std::abs(x); });
    case DataType::kInt8:
      return quantized_abs<std::int8_t>(ctx);
    case DataType::kInt16:
      if (ctx.input(0).quantization->is_quantized()) return quantized_abs<std::int16_t>(ctx);
      return map_kernel<std::int16_t, std::int16_t>(plain_magnitude<std::int16_t>);
    case DataType::kInt32:
      return map_kernel<std::int32_t, std::int32_t>(plain_magnitude<std::int32_t>);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef abs_op =
    define({.name = name_of(Op::ABS),
            .summary = "Absolute value.",
            .types = "float32; int8; int16 (quantized or plain); int32",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kNeverNegative}),
            .prepare = abs_prepare,
            .chip = {.instead = "Use MAXIMUM of x and -x (a MUL by -1).", .rewrite = "unary"}});

}  // namespace reef::ops

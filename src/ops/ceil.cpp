// SPDX-License-Identifier: Apache-2.0
// CEIL: the smallest integer not below x. Quantized tensors go through float; plain integers are their own ceiling.
#include <cmath>
#include <cstdint>

#include "numeric/fixed_point.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

template <typename T>
Result<Kernel> integer_ceil(const OpContext& ctx) {
  if (!ctx.input(0).quantization->is_quantized()) return map_kernel<T, T>([](T x) { return x; });
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  if constexpr (sizeof(T) == 2) REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  return map_kernel<T, T>([=](T x) {
    const float real = std::ceil(static_cast<float>(x - q.input.zero_point) * q.input.scale);
    const std::int32_t quantized = numeric::truncate_to_int32(std::round(real / q.output.scale));
    return numeric::saturate<T>(numeric::wrapping_add(quantized, q.output.zero_point));
  });
}

Result<Kernel> ceil_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const auto ceiling = [](float x) { return std::ceil(x); };
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return map_kernel<float, float>(ceiling);
    case DataType::kFloat16:
      return half_kernel(ceiling);
    case DataType::kInt8:
      return integer_ceil<std::int8_t>(ctx);
    case DataType::kInt16:
      return integer_ceil<std::int16_t>(ctx);
    case DataType::kInt32:
      return map_kernel<std::int32_t, std::int32_t>([](std::int32_t x) { return x; });
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef ceil_op = define(
    {.name = name_of(Op::CEIL),
     .summary = "Rounds up.",
     .types = "float32; float16; int8; int16 (both quantized or plain); int32",
     .form = Form::kUnary,
     .traits = trait_set({Trait::kKeepsNonNegative}),
     .prepare = ceil_prepare,
     .chip = {.instead = "Quantized values have no use for it: leave it out, or do it on the CPU behind the model."}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/unary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "numeric/fixed_point.h"

namespace reef::ops {
namespace {

template <typename T>
Result<Kernel> quantized_relu(const OpContext& ctx, ReluRange range) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  if constexpr (sizeof(T) == 2) REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  const auto quantized = [&](float real) {
    return numeric::wrapping_add(q.output.zero_point, numeric::truncate_to_int32(std::round(real / q.output.scale)));
  };
  const std::int32_t low = std::max<std::int32_t>(std::numeric_limits<T>::min(), quantized(range.low));
  std::int32_t high = std::numeric_limits<T>::max();
  if (!std::isinf(range.high)) high = std::min(high, quantized(range.high));
  const numeric::Multiplier factor = numeric::make_multiplier(q.input.scale / q.output.scale);
  const std::int32_t input_zero_point = q.input.zero_point, output_zero_point = q.output.zero_point;
  return map_kernel<T, T>([=](T x) {
    const std::int32_t y =
        numeric::wrapping_add(output_zero_point, numeric::multiply(std::int32_t{x} - input_zero_point, factor));
    return static_cast<T>(std::min(std::max(y, low), high));
  });
}

}  // namespace

Kernel float_function_kernel(void (*map)(const float*, std::int64_t, float*)) {
  return [map](RunContext& ctx) {
    const float* in = ctx.input(0).values<float>().data();
    float* out = ctx.output(0).mutable_values<float>().data();
    ctx.parallel_for(ctx.input(0).elements(), kUnaryGrain,
                     [&](std::int64_t begin, std::int64_t end) { map(in + begin, end - begin, out + begin); });
    return ok_status();
  };
}

Kernel byte_table_kernel(const kernels::ByteTable& table) {
  return [table](RunContext& ctx) {
    const auto* in = ctx.input(0).values<std::uint8_t>().data();
    auto* out = ctx.output(0).mutable_values<std::uint8_t>().data();
    constexpr std::int64_t kGrain = 1 << 16;
    ctx.parallel_for(ctx.input(0).elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      kernels::look_up_bytes(in + begin, end - begin, table, out + begin);
    });
    return ok_status();
  };
}

Result<UnaryQuantization> unary_quantization(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams input, per_tensor_quantization(ctx.input(0), "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams output, per_tensor_quantization(ctx.output(0), "output"));
  return UnaryQuantization{input, output};
}

Status require_zero_zero_points(const UnaryQuantization& q) {
  REEF_REQUIRE(q.input.zero_point == 0 && q.output.zero_point == 0,
               "int16 needs zero points of 0, but the input's is {} and the output's {}", q.input.zero_point,
               q.output.zero_point);
  return ok_status();
}

Result<Kernel> prepare_relu(PrepareContext& ctx, ReluRange range) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      // NaN and -0 stay as they are.
      return map_kernel<float, float>([range](float x) {
        return x < range.low ? range.low : x > range.high ? range.high : x;
      });
    case DataType::kInt8:
      return quantized_relu<std::int8_t>(ctx, range);
    case DataType::kUInt8:
      return quantized_relu<std::uint8_t>(ctx, range);
    case DataType::kInt16:
      if (range.int16_too) return quantized_relu<std::int16_t>(ctx, range);
      break;
    default:
      break;
  }
  return unsupported_types(ctx);
}

}  // namespace reef::ops

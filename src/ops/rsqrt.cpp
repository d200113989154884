// SPDX-License-Identifier: Apache-2.0
// RSQRT: 1 / sqrt(x). int8 by fixed-point arithmetic, int16 by table; on both, zero gives the largest output and a
// negative input fails while running, as in TFLite.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/elementwise/float_functions.h"
#include "numeric/fixed_point.h"
#include "numeric/fixed_point_math.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

// 1 / sqrt(x) of a centred int8 at the output's scale, before its zero point is added.
std::int32_t scaled_inverse_root(std::int32_t x, numeric::Multiplier factor) {
  constexpr int kFractionalBits = 20;
  numeric::Multiplier inverse = numeric::inverse_square_root(x);
  inverse.shift += kFractionalBits;
  const std::int32_t fixed = numeric::multiply(std::int32_t{1}, inverse);
  factor.shift -= kFractionalBits;
  if (factor.shift < -31) return 0;
  return numeric::multiply(fixed, factor);
}

// Runs `map` unless an element is below the zero point.
template <typename T>
Kernel refuse_negative(std::int32_t zero_point, Kernel map) {
  return [zero_point, map = std::move(map)](RunContext& ctx) {
    const auto values = ctx.input(0).values<T>();
    const bool negative = std::any_of(values.begin(), values.end(), [&](T x) { return x < zero_point; });
    REEF_REQUIRE(!negative, "the input has negative values; RSQRT is defined for positive ones");
    return map(ctx);
  };
}

Result<Kernel> rsqrt_8bit(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  const numeric::Multiplier factor = numeric::make_multiplier(1.0 / (std::sqrt(q.input.scale) * q.output.scale));
  numeric::Table8<std::int8_t> table = {};
  table[static_cast<std::uint8_t>(q.input.zero_point)] = std::numeric_limits<std::int8_t>::max();
  for (int x = q.input.zero_point + 1; x <= 127; ++x) {
    const std::int32_t scaled = scaled_inverse_root(x - q.input.zero_point, factor);
    table[static_cast<std::uint8_t>(x)] =
        numeric::saturate<std::int8_t>(numeric::wrapping_add(scaled, q.output.zero_point));
  }
  return refuse_negative<std::int8_t>(q.input.zero_point, map_kernel<std::int8_t, std::int8_t>([table](std::int8_t x) {
                                        return table[static_cast<std::uint8_t>(x)];
                                      }));
}

Result<Kernel> rsqrt_16bit(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  const float largest = 32767 * q.output.scale;
  REEF_ASSIGN_OR_RETURN(Kernel map,
                        table16_kernel(ctx, [largest](float x) { return x <= 0.0f ? largest : 1.0f / std::sqrt(x); }));
  return refuse_negative<std::int16_t>(0, std::move(map));
}

Result<Kernel> rsqrt_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return float_function_kernel(kernels::inverse_square_roots);
    case DataType::kInt8:
      return rsqrt_8bit(ctx);
    case DataType::kInt16:
      return rsqrt_16bit(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef rsqrt_op = define({.name = name_of(Op::RSQRT),
                                         .summary = "Reciprocal of the square root.",
                                         .types = "float32; int8; int16",
                                         .form = Form::kUnary,
                                         .traits = trait_set({Trait::kNeverNegative}),
                                         .prepare = rsqrt_prepare,
                                         .chip = {.first_runtime = 14}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// HARD_SWISH: x * min(max(x + 3, 0), 6) / 6.
//
// Quantized: 16-bit fixed point as in TFLite's reference kernel. The input is raised by 7 bits; one product brings it
// to the output's scale, another to a "gate" in [-1, 1] (3.0 is 1) that saturates and is moved to [0, 1]; their product
// is the result. The roundings differ from step to step, and on purpose: the last product truncates.
#include <algorithm>
#include <cstdint>
#include <limits>

#include "numeric/fixed_point.h"
#include "numeric/fixed_point_math.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

using numeric::saturating_rounding_doubling_high_mul;

struct HardSwishParams {
  std::int16_t input_zero_point = 0;
  std::int16_t output_zero_point = 0;
  std::int16_t output_mantissa = 0;
  int output_exponent = 0;  // never positive
  std::int16_t gate_mantissa = 0;
  int gate_exponent = 0;
};

// gemmlowp's rounding shift of 16-bit numbers. From 16 places on its mask no longer fits, and it gives 1 or -1 by sign.
std::int16_t rounding_divide_16(std::int16_t x, int exponent) {
  if (exponent >= 16) return x >= 0 ? 1 : -1;
  return static_cast<std::int16_t>(numeric::rounding_divide_by_power_of_two(x, exponent));
}

std::int16_t saturating_shift_left(std::int16_t x, int amount) {
  return static_cast<std::int16_t>(std::clamp<std::int64_t>(x * (std::int64_t{1} << amount), -32768, 32767));
}

template <typename T>
T hard_swish_hard_swish(T x, const HardSwishParams& p) {
  const auto raised = static_cast<std::int16_t>((x - p.input_zero_point) * 128);
  const std::int16_t unshifted_output = saturating_rounding_doubling_high_mul(raised, p.output_mantissa);
  std::int16_t gate = raised;
  // All but one of the left shifts come first: only the last may saturate with effect.
  if (p.gate_exponent > 0) gate = saturating_shift_left(gate, p.gate_exponent - 1);
  gate = saturating_rounding_doubling_high_mul(gate, p.gate_mantissa);
  if (p.gate_exponent > 0) gate = saturating_shift_left(gate, 1);
  if (p.gate_exponent < 0) gate = rounding_divide_16(gate, -p.gate_exponent);
  gate = static_cast<std::int16_t>((gate + (1 << 15)) >> 1);
  // The gate is not negative, so that the truncated product fits.
  const auto product = static_cast<std::int16_t>(gate * unshifted_output / (1 << 15));
  const auto result = static_cast<std::int16_t>(rounding_divide_16(product, -p.output_exponent) + p.output_zero_point);
  return numeric::saturate<T>(result);
}

template <typename T>
Result<Kernel> quantized_hard_swish(const OpContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  const float raised_scale = (1.0f / 128.0f) * q.input.scale;
  const numeric::Multiplier output_factor = numeric::make_multiplier(raised_scale / q.output.scale);
  REEF_REQUIRE(output_factor.shift <= 0,
               "the input's scale {} is 128 times the output's {} or more; quantize the output "
               "with a larger scale",
               q.input.scale, q.output.scale);
  constexpr float kGateScale = 3.0f / 32768.0f;
  const numeric::Multiplier gate_factor = numeric::make_multiplier(raised_scale / kGateScale);
  const HardSwishParams params = {
      static_cast<std::int16_t>(q.input.zero_point),        static_cast<std::int16_t>(q.output.zero_point),
      numeric::mantissa_to_16_bits(output_factor.mantissa), output_factor.shift,
      numeric::mantissa_to_16_bits(gate_factor.mantissa),   gate_factor.shift};
  numeric::Table8<T> table;
  for (int i = std::numeric_limits<T>::min(); i <= std::numeric_limits<T>::max(); ++i) {
    table[static_cast<std::uint8_t>(i)] = hard_swish_hard_swish(static_cast<T>(i), params);
  }
  return map_kernel<T, T>([table](T x) { return table[static_cast<std::uint8_t>(x)]; });
}

Result<Kernel> hard_swish_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return map_kernel<float, float>([](float x) { return x * std::min(6.0f, std::max(0.0f, x + 3)) / 6; });
    case DataType::kInt8:
      return quantized_hard_swish<std::int8_t>(ctx);
    case DataType::kUInt8:
      return quantized_hard_swish<std::uint8_t>(ctx);
    default:
      return unsupported_types(ctx);
  }
}

}  // namespace

constinit const OpDef hard_swish_op = define(
    {.name = name_of(Op::HARD_SWISH),
     .summary = "Hard swish: x * relu6(x + 3) / 6.",
     .types = "float32; int8; uint8",
     .form = Form::kUnary,
     .traits = trait_set({Trait::kKeepsNonNegative}),
     .prepare = hard_swish_prepare,
     .chip = {.instead = "Use RELU6 when training, or write it as x * RELU6(x + 3) / 6.", .rewrite = "hard-swish"}});

}  // namespace reef::ops

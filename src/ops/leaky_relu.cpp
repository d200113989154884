// SPDX-License-Identifier: Apache-2.0
// LEAKY_RELU: x where x > 0, alpha * x elsewhere; alpha may be any number. Quantized tensors are requantized with one
// factor for each side.
#include <cmath>
#include <cstdint>

#include "numeric/fixed_point.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kLeakyReluAttributes[] = {{"alpha", "slope below zero"}};

// TFLite's fixed-point form of a factor of either sign.
numeric::Multiplier signed_multiplier(float real) {
  numeric::Multiplier factor = numeric::make_multiplier(std::abs(real));
  if (real < 0) factor.mantissa = -factor.mantissa;
  return factor;
}

template <typename T>
Result<Kernel> quantized_leaky_relu(const OpContext& ctx, float alpha) {
  REEF_ASSIGN_OR_RETURN(const UnaryQuantization q, unary_quantization(ctx));
  if constexpr (sizeof(T) == 2) REEF_RETURN_IF_ERROR(require_zero_zero_points(q));
  REEF_REQUIRE(std::isfinite(alpha), "alpha is {}; it must be finite", alpha);
  const numeric::Multiplier positive = numeric::make_multiplier(q.input.scale / q.output.scale);
  const numeric::Multiplier negative = signed_multiplier(q.input.scale * alpha / q.output.scale);
  return map_kernel<T, T>([=](T x) {
    const std::int32_t centred = x - q.input.zero_point;
    const std::int32_t scaled = numeric::multiply(centred, centred >= 0 ? positive : negative);
    return numeric::saturate<T>(numeric::wrapping_add(scaled, q.output.zero_point));
  });
}

Result<Kernel> leaky_relu_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  const auto alpha = static_cast<float>(ctx.attributes().get_float("alpha"));
  return for_element_type<float, std::int8_t, std::uint8_t, std::int16_t>(
      ctx, ctx.input(0).type, [&]<typename T>() -> Result<Kernel> {
        if constexpr (sizeof(T) < 4) {
          return quantized_leaky_relu<T>(ctx, alpha);
        } else {
          return map_kernel<T, T>([alpha](T x) {
            const T scaled = x * alpha;  // always, so that there is nothing to branch for
            return x > 0 ? x : scaled;
          });
        }
      });
}

}  // namespace

constinit const OpDef leaky_relu_op =
    define({.name = name_of(Op::LEAKY_RELU),
            .summary = "x where positive, alpha * x elsewhere.",
            .attributes = kLeakyReluAttributes,
            .types = "float32; int8; uint8; int16",
            .form = Form::kUnary,
            .traits = trait_set({Trait::kKeepsNonNegative, Trait::kScalesByChannel}),
            .prepare = leaky_relu_prepare,
            .chip = {.instead = "Use PRELU, or MAXIMUM of x and a multiple of x.", .rewrite = "leaky-relu"}});

}  // namespace reef::ops

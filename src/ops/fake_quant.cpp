// SPDX-License-Identifier: Apache-2.0
// FAKE_QUANT: float32 rounded to the values that `num_bits` quantization of [min, max] has.
//
// The range is first moved so that 0 is one of those values. narrow_range is refused, as in TFLite.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kFakeQuantAttributes[] = {{"min", "lower end of the range"},
                                                 {"max", "upper end of the range, above min"},
                                                 {"num_bits", "2 to 16"},
                                                 {"narrow_range", "must be false"}};

Result<Kernel> fake_quant_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  if (ctx.attributes().get_bool("narrow_range"))
    return unsupported("narrow_range is meant for weights; set it to false");
  const std::int64_t num_bits = ctx.attributes().get_int("num_bits");
  REEF_REQUIRE(num_bits >= 2 && num_bits <= 16, "num_bits is {}; it must be 2 to 16", num_bits);
  const auto min = static_cast<float>(ctx.attributes().get_float("min"));
  const auto max = static_cast<float>(ctx.attributes().get_float("max"));
  REEF_REQUIRE(std::isfinite(min) && std::isfinite(max) && min < max && std::isfinite(max - min),
               "the range [{}, {}] is empty or not finite", min, max);

  const auto steps = static_cast<float>((1 << num_bits) - 1);
  const float scale = (max - min) / steps;
  REEF_REQUIRE(scale > 0, "the range [{}, {}] is too narrow for {} bits", min, max, num_bits);
  const float zero_point = std::round(std::clamp(0.0f - min / scale, 0.0f, steps));
  const float low = (0.0f - zero_point) * scale;
  const float high = (steps - zero_point) * scale;
  const float inverse_scale = 1.0f / scale;
  return map_kernel<float, float>([=](float x) {
    const float clamped = std::min(high, std::max(low, x));
    return std::round((clamped - low) * inverse_scale) * scale + low;
  });
}

}  // namespace

constinit const OpDef fake_quant_op =
    define({.name = name_of(Op::FAKE_QUANT),
            .summary = "Rounds float32 to what a quantized tensor could hold.",
            .attributes = kFakeQuantAttributes,
            .types = "float32",
            .form = Form::kUnary,
            .prepare = fake_quant_prepare,
            .chip = {.instead = "Convert the model with full integer quantization, which removes it."}});

}  // namespace reef::ops

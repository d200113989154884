// SPDX-License-Identifier: Apache-2.0
// PRELU: x where x >= 0, x * alpha elsewhere; alpha broadcasts to the input's shape, never the other way round.
//
// Quantized: the two branches have a factor each, input scale / output scale and input scale * alpha scale / output
// scale. With an int16 input, alpha is int8: TFLite reads the bytes of an int16 alpha as int8, so that is refused here.
#include <fmt/format.h>

#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/chip_rules.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status prelu_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(infer_broadcast(ctx));
  REEF_REQUIRE(ctx.output(0).shape == ctx.input(0).shape, "alpha's shape {} does not broadcast to the input's {}",
               ctx.input(1).shape.to_string(), ctx.input(0).shape.to_string());
  return ok_status();
}

template <typename T, typename Alpha = T>
Result<Kernel> prelu_prepare_quantized(const PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(ctx.input(0), "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams alpha, per_tensor_quantization(ctx.input(1), "alpha"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  // In single precision, as TFLite does.
  const numeric::Multiplier positive = numeric::make_multiplier(in.scale / out.scale);
  const numeric::Multiplier negative = numeric::make_multiplier(in.scale * alpha.scale / out.scale);
  const IntRange range = type_range(ctx.output(0).type);
  const kernels::Requantize result{negative, out.zero_point, range.min, range.max};
  if constexpr (sizeof(T) == 1) {
    return byte_pairs_kernel(ctx, kernels::BytePairs::prelu<T>(in.zero_point, alpha.zero_point, positive, result));
  }
  return binary_kernel<T, T, Alpha>(ctx, [=](T x, Alpha slope) {
    const std::int32_t value = x - in.zero_point;
    if (value >= 0) return static_cast<T>(result.finish(numeric::multiply(value, positive)));
    const std::int32_t product = value * (slope - alpha.zero_point);  // of 17 and 9 bits at most
    return static_cast<T>(result.finish(numeric::multiply(product, negative)));
  });
}

Result<Kernel> prelu_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  if (ctx.input(0).type == DataType::kInt16 && ctx.input(1).type == DataType::kInt8) {
    REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
    return prelu_prepare_quantized<std::int16_t, std::int8_t>(ctx);
  }
  REEF_RETURN_IF_ERROR(require_uniform_types(ctx));
  switch (ctx.input(0).type) {
    case DataType::kFloat32:
      return binary_kernel<float>(ctx, [](float x, float alpha) {
        const float scaled = x * alpha;  // always, so that there is nothing to branch for
        return x >= 0.0f ? x : scaled;
      });
    case DataType::kInt8:
      return prelu_prepare_quantized<std::int8_t>(ctx);
    case DataType::kUInt8:
      return prelu_prepare_quantized<std::uint8_t>(ctx);
    default:
      return unsupported_types(ctx);
  }
}

std::string has_alpha_per_pixel(const OpContext& ctx) {
  const Shape& alpha = ctx.input(1).shape;
  if (alpha.rank() == 0 || alpha.product(0, alpha.rank() - 1) == 1) return "";
  return fmt::format("alpha is {}", chip::shape_text(alpha));
}

constexpr ChipRule kPreluChipRules[] = {{
    .id = "prelu-alpha",
    .says = "There is one alpha for all, or one per channel.",
    .suggestion = "Share alpha over height and width: shared_axes=[1, 2] in Keras.",
    .broken = has_alpha_per_pixel,
    .evidence = "Table 1",
}};

}  // namespace

constinit const OpDef prelu_op =
    with_inference(prelu_infer, define({.name = name_of(Op::PRELU),
                                        .summary = "Multiplies negative elements by alpha.",
                                        .types = "float32; int8; uint8; int16 (alpha int8)",
                                        .form = Form::kBinary,
                                        .prepare = prelu_prepare,
                                        .chip = {.first_runtime = 12,
                                                 .rules = kPreluChipRules,
                                                 .parameters = input_set({1}),
                                                 .evidence = chip::kStamped12}}));

}  // namespace reef::ops

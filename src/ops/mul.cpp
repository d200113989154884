// SPDX-License-Identifier: Apache-2.0
// MUL: element-wise product with broadcasting and a fused activation.
//
// Quantized: (a - zero_a) * (b - zero_b), multiplied once to the output's scale. 16-bit inputs may also have an 8-bit
// output, the legacy of quantized LSTM cells: both inputs then are fractions of 2^15, whatever their scales say, and do
// not broadcast. 16-bit tensors whose output has no quantization are plain numbers.
#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

using kernels::Requantize;

constexpr AttributeDoc kMulAttributes[] = {
    {"fused_activation_function", "NONE, RELU, RELU6 or RELU_N1_TO_1, applied to the product"}};

template <typename T>
Result<Kernel> mul_prepare_plain(const PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Range<T> range, plain_activation_range<T>(ctx.attributes()));
  if constexpr (std::is_floating_point_v<T>) {
    return binary_kernel<T>(ctx, [=](T a, T b) { return limit_to(range, a * b); });
  } else {
    return binary_kernel<T>(ctx, [=](T a, T b) { return limit_to(range, numeric::wrapping_product(a, b)); });
  }
}

template <typename T>
Result<Kernel> mul_prepare_quantized(const PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const QuantParams a, per_tensor_quantization(ctx.input(0), "input 0"));
  REEF_ASSIGN_OR_RETURN(const QuantParams b, per_tensor_quantization(ctx.input(1), "input 1"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
  if constexpr (sizeof(T) == 2) {
    REEF_REQUIRE(a.zero_point == 0 && b.zero_point == 0 && out.zero_point == 0,
                 "int16 tensors must have zero point 0, not {}, {} and {}", a.zero_point, b.zero_point, out.zero_point);
  }
  // The factor is computed in single precision, as TFLite does.
  const numeric::Multiplier factor = numeric::make_multiplier(a.scale * b.scale / out.scale);
  const Requantize result{factor, out.zero_point, range.min, range.max};
  if constexpr (sizeof(T) == 1) {
    return byte_pairs_kernel(ctx, kernels::BytePairs::product<T>(a.zero_point, b.zero_point, result));
  }
  return binary_kernel<T>(ctx, [=](T x, T y) {
    const std::int32_t product = (x - a.zero_point) * (y - b.zero_point);
    return static_cast<T>(result.finish(numeric::multiply(product, factor)));
  });
}

// round(a * b / 2^15), saturating.
std::int32_t fraction_product(std::int16_t a, std::int16_t b) {
  const std::int32_t product = std::int32_t{a} * b;
  const std::int32_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
  return std::min((product + nudge) / (1 << 15), 32767);
}

template <typename Out>
Result<Kernel> prepare_fractions(const PrepareContext& ctx) {
  REEF_REQUIRE(ctx.input(0).shape == ctx.input(1).shape,
               "int16 inputs with an 8-bit output do not broadcast: the shapes are {} and {}",
               ctx.input(0).shape.to_string(), ctx.input(1).shape.to_string());
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
  return binary_kernel<std::int16_t, Out>(ctx, [=](std::int16_t a, std::int16_t b) {
    const std::int32_t eighth_bits = numeric::rounding_divide_by_power_of_two(fraction_product(a, b), 8);
    return static_cast<Out>(numeric::clamp(eighth_bits + out.zero_point, range.min, range.max));
  });
}

Result<Kernel> mul_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(1)));
  const DataType in = ctx.input(0).type;
  const DataType out = ctx.output(0).type;
  if (in == DataType::kInt16 && out == DataType::kInt8) return prepare_fractions<std::int8_t>(ctx);
  if (in == DataType::kInt16 && out == DataType::kUInt8) return prepare_fractions<std::uint8_t>(ctx);
  if (in != out) return unsupported_types(ctx);
  switch (in) {
    case DataType::kInt8:
      return mul_prepare_quantized<std::int8_t>(ctx);
    case DataType::kUInt8:
      return mul_prepare_quantized<std::uint8_t>(ctx);
    case DataType::kInt16:
      if (ctx.output(0).quantization->is_quantized()) return mul_prepare_quantized<std::int16_t>(ctx);
      return mul_prepare_plain<std::int16_t>(ctx);
    default:
      return for_element_type<float, std::int32_t, std::uint32_t, std::int64_t>(
          ctx, in, [&]<typename T>() { return mul_prepare_plain<T>(ctx); });
  }
}

}  // namespace

constinit const OpDef mul_op = define(
    {.name = name_of(Op::MUL),
     .summary = "Element-wise product, with broadcasting.",
     .attributes = kMulAttributes,
     .types = "float32; int8; uint8; int16 (quantized, or plain); int16 -> int8; int16 -> uint8; int32; uint32; int64",
     .form = Form::kBinary,
     .traits = trait_set({Trait::kTakesActivation, Trait::kBroadcasts, Trait::kKeepsNonNegative}),
     .prepare = mul_prepare,
     .chip = {.first_runtime = 10}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/weights.h"

#include <algorithm>
#include <cmath>

namespace reef::ops {
namespace {

// Sub-byte elements, lowest bits first, sign extended.
void widen_packed(const Tensor& tensor, int bits, std::int64_t first, std::int64_t count, std::int32_t zero_point,
                  std::int16_t* target) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(tensor.data);
  const std::int64_t per_byte = 8 / bits;
  const int sign = 1 << (bits - 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t element = first + i;
    const int raw = (bytes[element / per_byte] >> (element % per_byte * bits)) & ((1 << bits) - 1);
    target[i] = static_cast<std::int16_t>((raw ^ sign) - sign - zero_point);
  }
}

// The one scale that TFLite's older fields hold: 0 unless there is exactly one.
double single_scale(const Tensor& tensor) {
  return tensor.quantization->scale.size() == 1 ? static_cast<double>(tensor.quantization->scale[0]) : 0.0;
}

}  // namespace

void widen_elements(const Tensor& tensor, std::int64_t first, std::int64_t count, std::int32_t zero_point,
                    std::int16_t* target) {
  switch (tensor.type) {
    case DataType::kInt2:
      return widen_packed(tensor, 2, first, count, zero_point, target);
    case DataType::kInt4:
      return widen_packed(tensor, 4, first, count, zero_point, target);
    case DataType::kUInt8:
      return kernels::widen(reinterpret_cast<const std::uint8_t*>(tensor.data) + first, count, zero_point, target);
    case DataType::kInt16:
      return kernels::widen(reinterpret_cast<const std::int16_t*>(tensor.data) + first, count, zero_point, target);
    default:
      return kernels::widen(reinterpret_cast<const std::int8_t*>(tensor.data) + first, count, zero_point, target);
  }
}

kernels::PackedRows pack_rows(const Tensor& tensor, std::int64_t depth, std::int32_t zero_point) {
  const std::int64_t rows = depth == 0 ? 0 : tensor.elements() / depth;
  kernels::PackedRows packed(rows, depth);
  for (std::int64_t r = 0; r < rows; ++r) widen_elements(tensor, r * depth, depth, zero_point, packed.row(r));
  return packed;
}

Status require_symmetric(const Tensor& weights) {
  for (const std::int64_t zero_point : weights.quantization->zero_point) {
    REEF_REQUIRE(zero_point == 0, "weights ('{}') have zero point {}; {} weights must be symmetric (zero point 0)",
                 weights.name, zero_point, ir::type_name(weights.type));
  }
  return ok_status();
}

Status require_plain_storage(const Tensor& weights) {
  if (std::holds_alternative<ir::BlockwiseQuantization>(weights.quantization->details)) {
    return unsupported("weights ('{}') are quantized in blocks; quantize them per tensor or per channel", weights.name);
  }
  return ok_status();
}

Result<const Tensor*> optional_bias(const OpContext& ctx, int index, std::initializer_list<DataType> types,
                                    std::int64_t channels) {
  if (!ctx.has_input(index)) return static_cast<const Tensor*>(nullptr);
  const Tensor& bias = ctx.input(index);
  REEF_RETURN_IF_ERROR(require_type(bias, "bias", types));
  REEF_REQUIRE(bias.elements() == channels, "bias ('{}') has shape {}; {} elements, one per output channel, are needed",
               bias.name, bias.shape.to_string(), channels);
  for (const std::int64_t zero_point : bias.quantization->zero_point) {
    REEF_REQUIRE(bias.type == DataType::kFloat32 || zero_point == 0, "bias ('{}') has zero point {}; it must be 0",
                 bias.name, zero_point);
  }
  return &bias;
}

std::vector<std::int64_t> bias_values(const OpContext& ctx, int index) {
  if (!ctx.has_input(index)) return {};
  const Tensor& bias = ctx.input(index);
  if (bias.type == DataType::kInt64) {
    const auto values = bias.values<std::int64_t>();
    return {values.begin(), values.end()};
  }
  const auto values = bias.values<std::int32_t>();
  return {values.begin(), values.end()};
}

const float* float_bias(const OpContext& ctx, int index) {
  return ctx.has_input(index) ? ctx.input(index).values<float>().data() : nullptr;
}

Result<std::vector<double>> channel_factors(const Tensor& input, const Tensor& weights, int axis,
                                            const Tensor& output) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(input, "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(output, "output"));
  REEF_REQUIRE(weights.quantization->is_quantized(), "weights ('{}') have no quantization", weights.name);
  REEF_ASSIGN_OR_RETURN(const std::vector<float> scales, channel_scales(weights, axis));
  std::vector<double> factors;
  factors.reserve(scales.size());
  for (const float scale : scales) {
    factors.push_back(static_cast<double>(in.scale) * static_cast<double>(scale) / static_cast<double>(out.scale));
  }
  return factors;
}

Result<double> tensor_factor(const Tensor& input, const Tensor& weights, const Tensor* bias, const Tensor& output) {
  REEF_ASSIGN_OR_RETURN(const QuantParams in, per_tensor_quantization(input, "input"));
  REEF_ASSIGN_OR_RETURN(const QuantParams w, per_tensor_quantization(weights, "weights"));
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(output, "output"));
  if (bias != nullptr) {
    constexpr double kTolerance = 0.02;  // TFLite's: in steps of the output, per unit of bias
    const double product = static_cast<double>(in.scale) * static_cast<double>(w.scale);
    const double error = std::abs(product - single_scale(*bias)) / static_cast<double>(out.scale);
    REEF_REQUIRE(error <= kTolerance, "bias ('{}') has scale {}, but input and weights make it {}", bias->name,
                 single_scale(*bias), product);
  }
  return static_cast<double>(in.scale * w.scale) / static_cast<double>(out.scale);
}

Result<kernels::Requantizer> make_requantizer(const OpContext& ctx, kernels::Rounding rounding,
                                              const std::vector<double>& factors) {
  REEF_ASSIGN_OR_RETURN(const QuantParams out, per_tensor_quantization(ctx.output(0), "output"));
  REEF_ASSIGN_OR_RETURN(const IntRange range, quantized_activation_range(ctx.attributes(), ctx.output(0)));
  kernels::Requantizer result;
  result.set_factors(rounding, factors);
  result.zero_point = out.zero_point;
  result.lowest = range.min;
  result.highest = range.max;
  return result;
}

QuantizedRows quantize_rows(const float* values, std::int64_t rows, std::int64_t size,
                            kernels::FloatQuantizer quantizer) {
  QuantizedRows result;
  result.values.resize(static_cast<std::size_t>(rows * size));
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto [scale, zero_point] =
        kernels::quantize_floats(values + r * size, size, quantizer, result.values.data() + r * size);
    result.scales.push_back(scale);
    result.zero_points.push_back(zero_point);
  }
  return result;
}

bool as_in_2_9(const OpContext& ctx) {
  return ctx.environment() != nullptr && ctx.environment()->tflite_release() == TfliteRelease::k2_9;
}

kernels::FloatQuantizer float_quantizer(const OpContext& ctx, bool asymmetric) {
  if (!asymmetric) return kernels::FloatQuantizer::kSymmetric;
  return as_in_2_9(ctx) ? kernels::FloatQuantizer::kAsymmetricDouble : kernels::FloatQuantizer::kAsymmetric;
}

std::int64_t grain_for(std::initializer_list<std::int64_t> factors) {
  constexpr double kProductsPerChunk = 200'000;
  double products = 1;
  for (const std::int64_t factor : factors) products *= static_cast<double>(std::max<std::int64_t>(factor, 1));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kProductsPerChunk / products));
}

}  // namespace reef::ops

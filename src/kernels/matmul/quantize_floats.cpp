// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/quantize_floats.h"

#include <algorithm>
#include <cmath>

#include "numeric/fixed_point.h"

namespace reef::kernels {
namespace {

std::int8_t round_and_clamp(float value, std::int32_t lowest) {
  return static_cast<std::int8_t>(numeric::clamp(numeric::round_to_int32(value), lowest, 127));
}

FloatQuantization quantize_symmetric(const float* values, std::int64_t count, std::int8_t* quantized) {
  const auto [smallest, largest] = std::minmax_element(values, values + count);
  const float range = std::max(std::abs(*smallest), std::abs(*largest));
  if (range == 0) {
    std::fill_n(quantized, count, std::int8_t{0});
    return {};
  }
  const float inverse = 127 / range;
  for (std::int64_t i = 0; i < count; ++i) quantized[i] = round_and_clamp(values[i] * inverse, -127);
  return {range / 127, 0};
}

// Real is float or double: what scale and zero point are computed in.
template <typename Real>
FloatQuantization quantize_asymmetric(const float* values, std::int64_t count, std::int8_t* quantized) {
  const auto [smallest, largest] = std::minmax_element(values, values + count);
  const float low = std::min(0.0f, *smallest);
  const float high = std::max(0.0f, *largest);
  if (low == high) {
    std::fill_n(quantized, count, std::int8_t{0});
    return {};
  }
  const Real scale = Real{high - low} / 255;  // the difference is rounded to float either way
  // The zero point is taken from the end of the range where it suffers less from rounding.
  const Real from_low = -128 - low / scale;
  const Real from_high = 127 - high / scale;
  const bool low_is_better = 128 + std::abs(low / scale) < 127 + std::abs(high / scale);
  const std::int32_t zero_point =
      numeric::clamp(numeric::round_to_int32(low_is_better ? from_low : from_high), -128, 127);
  const FloatQuantization result{static_cast<float>(scale), zero_point};
  const float inverse = 1.0f / result.scale;
  for (std::int64_t i = 0; i < count; ++i) {
    quantized[i] = round_and_clamp(static_cast<float>(zero_point) + values[i] * inverse, -128);
  }
  return result;
}

}  // namespace

FloatQuantization quantize_floats(const float* values, std::int64_t count, FloatQuantizer quantizer,
                                  std::int8_t* quantized) {
  if (count == 0) return {};
  switch (quantizer) {
    case FloatQuantizer::kSymmetric:
      return quantize_symmetric(values, count, quantized);
    case FloatQuantizer::kAsymmetric:
      return quantize_asymmetric<float>(values, count, quantized);
    case FloatQuantizer::kAsymmetricDouble:
      return quantize_asymmetric<double>(values, count, quantized);
  }
  return {};
}

}  // namespace reef::kernels

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

}  // namespace

FloatQuantization quantize_symmetric(const float* values, std::int64_t count, std::int8_t* quantized) {
  if (count == 0) return {};
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

FloatQuantization quantize_asymmetric(const float* values, std::int64_t count, std::int8_t* quantized) {
  if (count == 0) return {};
  const auto [smallest, largest] = std::minmax_element(values, values + count);
  const double low = std::min(0.0f, *smallest);
  const double high = std::max(0.0f, *largest);
  if (low == high) {
    std::fill_n(quantized, count, std::int8_t{0});
    return {};
  }
  const double scale = (high - low) / 255.0;
  // The zero point is taken from the end of the range where it suffers less from rounding.
  const double from_low = -128.0 - low / scale;
  const double from_high = 127.0 - high / scale;
  const bool low_is_better = 128.0 + std::abs(low / scale) < 127.0 + std::abs(high / scale);
  const std::int32_t zero_point =
      numeric::clamp(numeric::round_to_int32(low_is_better ? from_low : from_high), -128, 127);
  const FloatQuantization result{static_cast<float>(scale), zero_point};
  const float inverse = 1.0f / result.scale;
  for (std::int64_t i = 0; i < count; ++i) {
    quantized[i] = round_and_clamp(static_cast<float>(zero_point) + values[i] * inverse, -128);
  }
  return result;
}

}  // namespace reef::kernels

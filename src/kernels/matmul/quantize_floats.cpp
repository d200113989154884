// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/quantize_floats.h"

#include <algorithm>
#include <cmath>

#include "kernels/simd/loops.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {
namespace {

// The smallest and the largest number.
struct Range {
  float low, high;
};

// Many columns side by side, which compilers make vectors of, and then those. Numbers that are not there to be compared
// (NaN, of which the result depends on the place) are left to the standard library.
Range range_of(const float* values, std::int64_t count) {
  constexpr std::int64_t kColumns = 64;
  Range range{values[0], values[0]};
  bool has_nan = false;
  in_vectors([&] {
    float low[kColumns], high[kColumns];
    std::int32_t unordered[kColumns] = {};
    std::fill_n(low, kColumns, values[0]);
    std::fill_n(high, kColumns, values[0]);
    const auto add = [&](std::int64_t first, std::int64_t columns) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const float x = values[first + c];
        low[c] = x < low[c] ? x : low[c];
        high[c] = x > high[c] ? x : high[c];
        unordered[c] |= x == x ? 0 : 1;
      }
    };
    std::int64_t i = 0;
    for (; i + kColumns <= count; i += kColumns) add(i, kColumns);
    add(i, count - i);
    for (std::int64_t c = 0; c < kColumns; ++c) {
      range.low = std::min(range.low, low[c]);
      range.high = std::max(range.high, high[c]);
      has_nan = has_nan || unordered[c] != 0;
    }
  });
  if (!has_nan) return range;
  const auto [smallest, largest] = std::minmax_element(values, values + count);
  return {*smallest, *largest};
}

// Rounded, halves away from zero, and limited. `real_of(x)` is what is rounded.
template <typename RealOf>
void round_and_clamp(const float* values, std::int64_t count, std::int32_t lowest, std::int8_t* quantized,
                     const RealOf& real_of) {
  constexpr std::int64_t kTogether = 64;
  in_vectors([&] {
    const float least = static_cast<float>(lowest), most = 127.0f;
    // Small loops of a known length, one step each: compilers make vectors of these, not of all in one.
    float reals[kTogether] = {};
    std::int32_t whole[kTogether];
    for (std::int64_t first = 0; first < count; first += kTogether) {
      const std::int64_t some = std::min(kTogether, count - first);
      for (std::int64_t i = 0; i < some; ++i) reals[i] = real_of(values[first + i]);
      for (std::int64_t i = 0; i < kTogether; ++i)
        reals[i] = reals[i] == reals[i] ? reals[i] : 0.0f;  // NaN counts as 0
      for (std::int64_t i = 0; i < kTogether; ++i) reals[i] = reals[i] < least ? least : reals[i];
      for (std::int64_t i = 0; i < kTogether; ++i) reals[i] = reals[i] > most ? most : reals[i];
      for (std::int64_t i = 0; i < kTogether; ++i) whole[i] = static_cast<std::int32_t>(reals[i]);
      for (std::int64_t i = 0; i < kTogether; ++i) {
        const float rest = reals[i] - static_cast<float>(whole[i]);
        whole[i] += static_cast<std::int32_t>(rest + rest);  // 1 more from a half on
      }
      for (std::int64_t i = 0; i < some; ++i) quantized[first + i] = static_cast<std::int8_t>(whole[i]);
    }
  });
}

FloatQuantization quantize_symmetric(const float* values, std::int64_t count, std::int8_t* quantized) {
  const auto [smallest, largest] = range_of(values, count);
  const float range = std::max(std::abs(smallest), std::abs(largest));
  if (range == 0) {
    std::fill_n(quantized, count, std::int8_t{0});
    return {};
  }
  const float inverse = 127 / range;
  round_and_clamp(values, count, -127, quantized, [inverse](float x) { return x * inverse; });
  return {range / 127, 0};
}

// Real is float or double: what scale and zero point are computed in.
template <typename Real>
FloatQuantization quantize_asymmetric(const float* values, std::int64_t count, std::int8_t* quantized) {
  const auto [smallest, largest] = range_of(values, count);
  const float low = std::min(0.0f, smallest);
  const float high = std::max(0.0f, largest);
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
  round_and_clamp(values, count, -128, quantized,
                  [inverse, zero = static_cast<float>(zero_point)](float x) { return zero + x * inverse; });
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

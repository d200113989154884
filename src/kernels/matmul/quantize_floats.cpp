// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/quantize_floats.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// Rounded, halves away from zero, and limited. real_of(x, real) sets what is rounded, of a vector.
template <typename RealOf>
void round_and_clamp(const float* values, std::int64_t count, std::int32_t lowest, std::int8_t* quantized,
                     const RealOf& real_of) {
  constexpr std::int64_t kLanes = 8;
  using Floats [[gnu::vector_size(kLanes * 4)]] = float;
  using Ints [[gnu::vector_size(kLanes * 4)]] = std::int32_t;
  in_vectors([&] {
    const Floats least = static_cast<float>(lowest) - Floats{}, most = 127.0f - Floats{};
    for (std::int64_t first = 0; first < count; first += kLanes) {
      const std::int64_t some = std::min(kLanes, count - first);
      Floats x = {}, real;
      if (some == kLanes) {
        std::memcpy(&x, values + first, sizeof x);
      } else {
        std::memcpy(&x, values + first, static_cast<std::size_t>(some) * sizeof(float));
      }
      real_of(x, real);
      const Floats known = real == real ? real : Floats{};  // NaN counts as 0
      const Floats raised = known < least ? least : known;
      const Floats limited = raised > most ? most : raised;
      Ints whole = __builtin_convertvector(limited, Ints);
      const Floats rest = limited - __builtin_convertvector(whole, Floats);
      whole += __builtin_convertvector(rest + rest, Ints);  // 1 more from a half on
      std::int32_t numbers[kLanes];
      std::memcpy(numbers, &whole, sizeof numbers);
      std::int8_t bytes[kLanes];
      for (std::int64_t i = 0; i < kLanes; ++i) bytes[i] = static_cast<std::int8_t>(numbers[i]);
      if (some == kLanes) {
        std::memcpy(quantized + first, bytes, sizeof bytes);
      } else {
        std::memcpy(quantized + first, bytes, static_cast<std::size_t>(some));
      }
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
  round_and_clamp(values, count, -127, quantized, [inverse](const auto& x, auto& real) { real = x * inverse; });
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
  round_and_clamp(
      values, count, -128, quantized,
      [inverse, zero = static_cast<float>(zero_point)](const auto& x, auto& real) { real = zero + x * inverse; });
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

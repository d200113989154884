// SPDX-License-Identifier: Apache-2.0
// Quantized division as TFLite's reference kernel does it: with a fixed-point reciprocal from three Newton-Raphson
// steps.
//
// Every rounding of the reference shows in the result, so the steps below are its steps. Where the numerator is so
// small that the final shift exceeds 31 bits, the reference's result is not the quotient; see rescale.h.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"

namespace reef::kernels {

// x * 2^exponent, saturating. 0 < exponent < 31.
inline std::int32_t saturating_shift_left(std::int32_t x, int exponent) {
  const std::int32_t threshold = (std::int32_t{1} << (31 - exponent)) - 1;
  if (x > threshold) return std::numeric_limits<std::int32_t>::max();
  if (x < -threshold) return std::numeric_limits<std::int32_t>::min();
  return numeric::wrapping_shift_left(x, exponent);
}

// 1 / (1 + x) for x in [0, 1); x and the result in units of 2^-31.
inline std::int32_t one_over_one_plus(std::int32_t x) {
  using numeric::saturating_rounding_doubling_high_mul;
  constexpr std::int32_t kOne = std::numeric_limits<std::int32_t>::max();
  const std::int64_t sum = std::int64_t{x} + kOne;
  const auto half_denominator = static_cast<std::int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  // Below, numbers are in units of 2^-29. The first estimate is 48/17 - 32/17 * half_denominator.
  constexpr std::int32_t k48Over17 = 1515870810;
  constexpr std::int32_t kMinus32Over17 = -1010580540;
  constexpr std::int32_t kOneInUnits = 1 << 29;
  std::int32_t estimate =
      numeric::wrapping_add(k48Over17, saturating_rounding_doubling_high_mul(half_denominator, kMinus32Over17));
  for (int step = 0; step < 3; ++step) {
    const std::int32_t product = saturating_rounding_doubling_high_mul(half_denominator, estimate);
    const std::int32_t error = numeric::wrapping_sub(kOneInUnits, product);
    const std::int32_t correction = saturating_rounding_doubling_high_mul(estimate, error);  // units of 2^-27
    estimate = numeric::wrapping_add(estimate, saturating_shift_left(correction, 2));
  }
  return saturating_shift_left(estimate, 1);  // half of it, in units of 2^-31
}

// numerator / denominator * factor. The numbers are differences of 16-bit ones at most; the denominator is not 0.
inline std::int32_t divide_as_shipped(std::int32_t numerator, std::int32_t denominator, numeric::Multiplier factor) {
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  const int leading_zeros = std::countl_zero(static_cast<std::uint32_t>(denominator));
  const auto fraction =
      static_cast<std::int32_t>((static_cast<std::uint32_t>(denominator) << leading_zeros) - (std::uint32_t{1} << 31));
  const std::int32_t reciprocal = one_over_one_plus(fraction);
  const int reciprocal_shift = 31 - leading_zeros;
  // Copies of the sign bit below the sign bit.
  const auto magnitude_bits = static_cast<std::uint32_t>(numerator < 0 ? ~numerator : numerator);
  const int headroom = std::countl_zero(magnitude_bits) - 1;
  const std::int32_t quotient =
      numeric::saturating_rounding_doubling_high_mul(numeric::wrapping_shift_left(numerator, headroom), reciprocal);
  return multiply_as_shipped(quotient, {factor.mantissa, factor.shift - reciprocal_shift - headroom});
}

}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
// Quantized division as TFLite's reference kernel does it: with a fixed-point reciprocal from three Newton-Raphson
// steps.
//
// Every rounding of the reference shows in the result, so the steps below are its steps. Where the numerator is so
// small that the final shift exceeds 31 bits, the reference's result is not the quotient; see rescale.h.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/elementwise/rescale.h"
#include "numeric/fixed_point.h"
#include "numeric/fixed_point_math.h"

namespace reef::kernels {

// numerator / denominator * factor. The numbers are differences of 16-bit ones at most; the denominator is not 0.
inline std::int32_t divide_as_shipped(std::int32_t numerator, std::int32_t denominator, numeric::Multiplier factor) {
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  const int leading_zeros = std::countl_zero(static_cast<std::uint32_t>(denominator));
  const auto fraction =
      static_cast<std::int32_t>((static_cast<std::uint32_t>(denominator) << leading_zeros) - (std::uint32_t{1} << 31));
  const std::int32_t reciprocal =
      numeric::one_over_one_plus_x_for_x_in_0_1(numeric::Fixed<std::int32_t, 0>{fraction}).raw;
  const int reciprocal_shift = 31 - leading_zeros;
  // Copies of the sign bit below the sign bit.
  const auto magnitude_bits = static_cast<std::uint32_t>(numerator < 0 ? ~numerator : numerator);
  const int headroom = std::countl_zero(magnitude_bits) - 1;
  const std::int32_t quotient =
      numeric::saturating_rounding_doubling_high_mul(numeric::wrapping_shift_left(numerator, headroom), reciprocal);
  return multiply_as_shipped(quotient, {factor.mantissa, factor.shift - reciprocal_shift - headroom});
}

}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
// TFLite's fixed-point arithmetic: THE definition of requantization for the CPU runtime.
//
// A real factor (input_scale * weight_scale / output_scale) becomes an int32 mantissa in [2^30, 2^31) and a power of
// two. An accumulator is multiplied by the mantissa keeping the high 32 bits with rounding, then shifted with
// rounding. These are two roundings, and TFLite's reference kernels do both ("double rounding"); so do we, bit for
// bit. The chip rounds once, in float: that flavour has its own file and the two are never mixed.
//
// Checked against: ruy/gemmlowp's published definitions and, through tests/vectors, a real TFLite runtime.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace reef::numeric {

// round(a * b / 2^31), halves upwards; the one overflow (both are INT32_MIN) saturates. gemmlowp's definition nudges by
// sign and truncates, which comes to the same for every product.
inline std::int32_t saturating_rounding_doubling_high_mul(std::int32_t a, std::int32_t b) {
  if (a == b && a == std::numeric_limits<std::int32_t>::min()) return std::numeric_limits<std::int32_t>::max();
  const std::int64_t product = static_cast<std::int64_t>(a) * b;
  return static_cast<std::int32_t>((product + (std::int64_t{1} << 30)) >> 31);
}

// round(x / 2^exponent), halves away from zero. 0 <= exponent <= 31.
inline std::int32_t rounding_divide_by_power_of_two(std::int32_t x, int exponent) {
  const auto mask = static_cast<std::int32_t>((std::int64_t{1} << exponent) - 1);
  const std::int32_t remainder = x & mask;
  const std::int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

// x * 2^exponent without undefined behaviour: wraps as a 32-bit register does. 0 <= exponent <= 31.
inline std::int32_t wrapping_shift_left(std::int32_t x, int exponent) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << exponent);
}

inline std::int32_t wrapping_add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
inline std::int32_t wrapping_sub(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}
inline std::int32_t wrapping_mul(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) * static_cast<std::uint32_t>(b));
}

// A real factor as mantissa * 2^(shift - 31).
struct Multiplier {
  std::int32_t mantissa = 0;  // 0, or in [2^30, 2^31)
  int shift = 0;              // positive: left, negative: right; in [-31, 30] after make_multiplier
};

// The fixed-point form of `real` (finite, >= 0). A factor below 2^-32 becomes 0; one of 2^30 or more saturates.
inline Multiplier make_multiplier(double real) {
  if (!(real > 0) || !std::isfinite(real)) return {};
  int shift = 0;
  const double fraction = std::frexp(real, &shift);
  auto mantissa = static_cast<std::int64_t>(std::round(fraction * static_cast<double>(std::int64_t{1} << 31)));
  if (mantissa == (std::int64_t{1} << 31)) {
    mantissa /= 2;
    ++shift;
  }
  if (shift < -31) return {};
  if (shift > 30) return {std::numeric_limits<std::int32_t>::max(), 30};
  return {static_cast<std::int32_t>(mantissa), shift};
}

// x * factor, rounded as TFLite's reference kernels round (32-bit accumulators).
inline std::int32_t multiply(std::int32_t x, Multiplier factor) {
  const int left = factor.shift > 0 ? factor.shift : 0;
  const int right = factor.shift > 0 ? 0 : -factor.shift;
  return rounding_divide_by_power_of_two(
      saturating_rounding_doubling_high_mul(wrapping_shift_left(x, left), factor.mantissa), right);
}

// The same for the 48-bit accumulators of 16-bit activations: the mantissa is rounded to 16 bits, the sum to one
// rounding shift. |x| < 2^47 and -31 <= shift < 8 hold for any tensor TFLite accepts; beyond them the result is
// unspecified but computed without undefined behaviour.
inline std::int32_t multiply(std::int64_t x, Multiplier factor) {
  const std::int32_t reduced = factor.mantissa < 0x7FFF0000 ? ((factor.mantissa + (1 << 15)) >> 16) : 0x7FFF;
  const int total_shift = 15 - factor.shift;
  if (total_shift < 1) {
    return static_cast<std::int32_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(reduced)
                                     << (total_shift < -62 ? 62 : -total_shift));
  }
  const auto product = static_cast<std::int64_t>(static_cast<std::uint64_t>(x) * static_cast<std::uint64_t>(reduced) +
                                                 (std::uint64_t{1} << (total_shift - 1)));
  return static_cast<std::int32_t>(product >> total_shift);
}

template <typename T>
T saturate(std::int32_t x) {
  constexpr std::int32_t low = std::numeric_limits<T>::min();
  constexpr std::int32_t high = std::numeric_limits<T>::max();
  return static_cast<T>(x < low ? low : x > high ? high : x);
}

inline std::int32_t clamp(std::int32_t x, std::int32_t low, std::int32_t high) {
  return x < low ? low : x > high ? high : x;
}

// Rounds to the nearest integer (halves away from zero, as std::round) and saturates to int32; NaN becomes 0.
inline std::int32_t round_to_int32(double x) {
  if (std::isnan(x)) return 0;
  const double rounded = std::round(x);
  if (rounded <= -2147483648.0) return std::numeric_limits<std::int32_t>::min();
  if (rounded >= 2147483647.0) return std::numeric_limits<std::int32_t>::max();
  return static_cast<std::int32_t>(rounded);
}

}  // namespace reef::numeric

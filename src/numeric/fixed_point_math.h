// SPDX-License-Identifier: Apache-2.0
// Exponential, logistic, tanh, logarithm, reciprocal and inverse square root in fixed point.
//
// TFLite's integer kernels (SOFTMAX, LOG_SOFTMAX, LSTM, L2_NORMALIZATION, 16-bit LOGISTIC and TANH) compute these with
// gemmlowp's fixed-point functions, whose every rounding shows in the result. This file computes the same functions
// with the same steps; the constants and the order of operations are therefore not free to change.
//
// Number format: Fixed<Raw, m> holds raw / 2^(bits(Raw) - 1 - m), so it covers [-2^m, 2^m). Raw is int16_t or int32_t.
// Arithmetic that would overflow in the reference (which only garbage inputs reach) wraps here instead.
//
// Checked against: gemmlowp's published fixedpoint.h, TFLite's internal/common.h and, through tests/vectors, a real
// TFLite runtime.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "numeric/fixed_point.h"

namespace reef::numeric {

// ---- Operations on raw integers -------------------------------------------------------------------------------------

template <typename Raw>
Raw wrap_add(Raw a, Raw b) {
  return static_cast<Raw>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
template <typename Raw>
Raw wrap_sub(Raw a, Raw b) {
  return static_cast<Raw>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

// The 16-bit sibling of the 32-bit function: round(a * b / 2^15), halves away from zero, -1 * -1 saturates.
inline std::int16_t saturating_rounding_doubling_high_mul(std::int16_t a, std::int16_t b) {
  if (a == b && a == std::numeric_limits<std::int16_t>::min()) return std::numeric_limits<std::int16_t>::max();
  const std::int32_t product = static_cast<std::int32_t>(a) * b;
  const std::int32_t nudge = product >= 0 ? (1 << 14) : 1 - (1 << 14);
  return static_cast<std::int16_t>((product + nudge) / (1 << 15));
}

template <typename Raw>
Raw saturating_add(Raw a, Raw b) {
  const std::int64_t sum = static_cast<std::int64_t>(a) + b;
  return static_cast<Raw>(
      std::clamp<std::int64_t>(sum, std::numeric_limits<Raw>::min(), std::numeric_limits<Raw>::max()));
}
template <typename Raw>
Raw saturating_sub(Raw a, Raw b) {
  const std::int64_t difference = static_cast<std::int64_t>(a) - b;
  return static_cast<Raw>(
      std::clamp<std::int64_t>(difference, std::numeric_limits<Raw>::min(), std::numeric_limits<Raw>::max()));
}

// (a + b) / 2, halves away from zero.
template <typename Raw>
Raw rounding_half_sum(Raw a, Raw b) {
  const std::int64_t sum = static_cast<std::int64_t>(a) + b;
  return static_cast<Raw>((sum + (sum >= 0 ? 1 : -1)) / 2);
}

// x * 2^exponent: saturating to the left (exponent > 0), rounding halves away from zero to the right.
// |exponent| must be less than the number of bits of Raw; larger ones are taken as that limit.
template <typename Raw>
Raw saturating_rounding_multiply_by_power_of_two(Raw x, int exponent) {
  constexpr int kMaxExponent = std::numeric_limits<Raw>::digits;
  if (exponent <= 0) {
    return static_cast<Raw>(rounding_divide_by_power_of_two(std::int32_t{x}, std::min(-exponent, kMaxExponent)));
  }
  exponent = std::min(exponent, kMaxExponent);
  const auto threshold = static_cast<std::int32_t>((std::int64_t{1} << (kMaxExponent - exponent)) - 1);
  if (x > threshold) return std::numeric_limits<Raw>::max();
  if (x < -threshold) return std::numeric_limits<Raw>::min();
  return static_cast<Raw>(static_cast<std::uint32_t>(x) << exponent);
}

// ---- The number type ------------------------------------------------------------------------------------------------

template <typename Raw, int kBitsOfInteger>
struct Fixed {
  static constexpr int kTotalBits = 8 * sizeof(Raw);
  static constexpr int kIntegerBits = kBitsOfInteger;
  static constexpr int kFractionalBits = kTotalBits - 1 - kIntegerBits;
  static_assert(std::is_same_v<Raw, std::int16_t> || std::is_same_v<Raw, std::int32_t>);
  static_assert(kIntegerBits >= 0 && kIntegerBits < kTotalBits);

  Raw raw = 0;

  // 1, or the largest value below 1 when there are no integer bits.
  static constexpr Fixed one() {
    if constexpr (kIntegerBits == 0) {
      return {std::numeric_limits<Raw>::max()};
    } else {
      return {static_cast<Raw>(Raw{1} << kFractionalBits)};
    }
  }
  // 2^exponent; must be representable.
  static constexpr Fixed power_of_two(int exponent) {
    return {static_cast<Raw>(Raw{1} << (kFractionalBits + exponent))};
  }
  // A constant given as the raw value of the 32-bit format with the same integer bits.
  static Fixed constant(std::int32_t raw32) {
    return {static_cast<Raw>(rounding_divide_by_power_of_two(raw32, 32 - kTotalBits))};
  }

  friend Fixed operator+(Fixed a, Fixed b) { return {wrap_add(a.raw, b.raw)}; }
  friend Fixed operator-(Fixed a, Fixed b) { return {wrap_sub(a.raw, b.raw)}; }
  friend Fixed operator-(Fixed a) { return {wrap_sub(Raw{0}, a.raw)}; }
};

// The product's integer bits add up; its low half is rounded away.
template <typename Raw, int kA, int kB>
Fixed<Raw, kA + kB> operator*(Fixed<Raw, kA> a, Fixed<Raw, kB> b) {
  return {saturating_rounding_doubling_high_mul(a.raw, b.raw)};
}

// The same real number with other integer bits, rounded or saturated as needed.
template <int kTo, typename Raw, int kFrom>
Fixed<Raw, kTo> rescale(Fixed<Raw, kFrom> x) {
  return {saturating_rounding_multiply_by_power_of_two(x.raw, kFrom - kTo)};
}

// The same raw bits taken to mean 2^kExponent times as much.
template <int kExponent, typename Raw, int kBits>
Fixed<Raw, kBits + kExponent> exact_multiply_by_power_of_two(Fixed<Raw, kBits> x) {
  return {x.raw};
}

// ---- Exponential ----------------------------------------------------------------------------------------------------

// exp(a) for a in [-1/4, 0): Taylor polynomial of degree 4 around -1/8.
template <typename Raw>
Fixed<Raw, 0> exp_between_minus_one_quarter_and_0(Fixed<Raw, 0> a) {
  using F = Fixed<Raw, 0>;
  const F exp_of_minus_one_eighth = F::constant(1895147668);
  const F one_third = F::constant(715827883);
  const F x = a + F::power_of_two(-3);
  const F x2 = x * x;
  const F x3 = x2 * x;
  const F x4 = x2 * x2;
  const F x4_over_4 = {saturating_rounding_multiply_by_power_of_two(x4.raw, -2)};
  const F higher_terms = {saturating_rounding_multiply_by_power_of_two((((x4_over_4 + x3) * one_third) + x2).raw, -1)};
  const F correction = exp_of_minus_one_eighth * (x + higher_terms);
  // Only 16 bits can overflow here, by a rounding.
  return {sizeof(Raw) == 2 ? saturating_add(exp_of_minus_one_eighth.raw, correction.raw)
                           : wrap_add(exp_of_minus_one_eighth.raw, correction.raw)};
}

// exp(a) for a <= 0: the polynomial for a modulo 1/4, times exp(-2^k) for every bit k of the rest.
template <typename Raw, int kBits>
Fixed<Raw, 0> exp_on_negative_values(Fixed<Raw, kBits> a) {
  using Input = Fixed<Raw, kBits>;
  using Output = Fixed<Raw, 0>;
  constexpr int kLowestExponent = -2;
  // round(exp(-2^k) * 2^31) for k = -2 .. 4.
  constexpr std::int32_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242};

  if (a.raw == 0) return Output::one();
  const Input quarter = Input::power_of_two(kLowestExponent);
  const auto mask = static_cast<Raw>(quarter.raw - 1);
  const Input modulo_quarter = Input{static_cast<Raw>(a.raw & mask)} - quarter;  // in [-1/4, 0)
  const auto rest = static_cast<std::uint32_t>((modulo_quarter - a).raw);
  Output result = exp_between_minus_one_quarter_and_0(rescale<0>(modulo_quarter));
  for (int k = kLowestExponent; k <= 4 && k < kBits; ++k) {
    if ((rest >> (Input::kFractionalBits + k)) & 1) {
      result = result * Output::constant(kFactors[k - kLowestExponent]);
    }
  }
  if constexpr (kBits > 5) {  // below -32 the bits above no longer count; exp is 0 there
    if (a.raw < Input::constant(-(1 << (36 - kBits))).raw) return {0};
  }
  return result;
}

// ---- Quotients, logistic, tanh --------------------------------------------------------------------------------------

// 2 / (1 + a) for a in [0, 1], by three Newton steps from the linear estimate 48/17 - 32/17 * d of 1/d, d = (1 + a)
// / 2.
template <typename Raw>
Fixed<Raw, 2> two_over_one_plus_x(Fixed<Raw, 0> a) {
  using F2 = Fixed<Raw, 2>;
  const Fixed<Raw, 0> half_denominator = {rounding_half_sum(a.raw, Fixed<Raw, 0>::one().raw)};
  F2 x = F2::constant(1515870810) + half_denominator * F2::constant(-1010580540);
  for (int i = 0; i < 3; ++i) {
    const F2 error = F2::one() - half_denominator * x;
    x = x + rescale<2>(x * error);
  }
  return x;
}

// 1 / (1 + a) for a in [0, 1].
template <typename Raw>
Fixed<Raw, 0> one_over_one_plus_x_for_x_in_0_1(Fixed<Raw, 0> a) {
  return rescale<0>(exact_multiply_by_power_of_two<-1>(two_over_one_plus_x(a)));
}

// (1 - a) / (1 + a) for a in [0, 1].
template <typename Raw>
Fixed<Raw, 0> one_minus_x_over_one_plus_x_for_x_in_0_1(Fixed<Raw, 0> a) {
  return rescale<0>(two_over_one_plus_x(a) - Fixed<Raw, 2>::one());
}

template <typename Raw, int kBits>
Fixed<Raw, 0> logistic(Fixed<Raw, kBits> a) {
  using Output = Fixed<Raw, 0>;
  if (a.raw == 0) return Output::constant(1 << 30);
  const Fixed<Raw, kBits> minus_magnitude = a.raw > 0 ? -a : a;
  const Output of_magnitude = one_over_one_plus_x_for_x_in_0_1(exp_on_negative_values(minus_magnitude));
  return a.raw > 0 ? of_magnitude : Output::one() - of_magnitude;
}

template <typename Raw, int kBits>
Fixed<Raw, 0> tanh(Fixed<Raw, kBits> a) {
  if (a.raw == 0) return {0};
  const Fixed<Raw, kBits> minus_magnitude = a.raw > 0 ? -a : a;
  const Fixed<Raw, 0> of_magnitude = one_minus_x_over_one_plus_x_for_x_in_0_1(
      exp_on_negative_values(exact_multiply_by_power_of_two<1>(minus_magnitude)));
  return a.raw > 0 ? of_magnitude : -of_magnitude;
}

// ---- Logarithm, reciprocal, inverse square root (32 bits) -----------------------------------------------------------

// log(x) for x in [1, 2^kIn) (in practice also down to 2^-kIn). kOut integer bits must be enough for the result.
//
// x is brought to r * 2^k with r near sqrt(sqrt(1/2)), in two ways (scaled by sqrt(1/2) or not) of which the better one
// is taken; log(r) is a rational approximation in q = 2 * (r - sqrt(sqrt(1/2))).
template <int kOut, int kIn>
Fixed<std::int32_t, kOut> log_of_x_from_1(Fixed<std::int32_t, kIn> x) {
  using F0 = Fixed<std::int32_t, 0>;
  constexpr int kAccumulatorBits = kOut + 1;  // one spare bit: the sum's terms may exceed the result
  using Accumulator = Fixed<std::int32_t, kAccumulatorBits>;
  constexpr F0 kLog2 = {1488522236};
  constexpr F0 kFourthRootOfHalf = {1805811301};
  constexpr F0 kRootOfHalf = {1518500250};
  constexpr F0 kAlphaNumerator = {117049297};    // 11/240 * 2^(1/4)
  constexpr F0 kAlphaDenominator = {127690142};  // 1/20 * 2^(1/4)
  constexpr F0 kAlphaConstant = {1057819769};    // 2 / 2^(1/4) - 2^(1/4)
  constexpr F0 kAlphaFactor = {638450708};       // 1/4 * 2^(1/4)
  const std::int32_t quarter = rescale<kAccumulatorBits>(F0{536870912}).raw;
  const auto whole = [](int exponent) {
    return saturating_rounding_multiply_by_power_of_two(std::int32_t{exponent}, 31 - kAccumulatorBits);
  };

  const F0 z_a = {x.raw};
  const int a_headroom_plus_1 = std::countl_zero(static_cast<std::uint32_t>(z_a.raw));
  const F0 a_normalized = {saturating_rounding_multiply_by_power_of_two(z_a.raw, a_headroom_plus_1 - 1)};
  const std::int32_t r_a = saturating_rounding_multiply_by_power_of_two((a_normalized * kRootOfHalf).raw, 1);
  const std::int32_t a_exponent = saturating_add(whole(kIn - a_headroom_plus_1), quarter);

  const F0 z_b = z_a * kRootOfHalf;
  const int b_headroom = std::countl_zero(static_cast<std::uint32_t>(z_b.raw)) - 1;
  const std::int32_t r_b = saturating_rounding_multiply_by_power_of_two(z_a.raw, b_headroom);
  const std::int32_t b_exponent = saturating_sub(whole(kIn - b_headroom), quarter);

  const F0 r = {std::min(r_a, r_b)};
  const Accumulator exponent = {std::max(a_exponent, b_exponent)};

  const F0 p = {rounding_half_sum(r.raw, kFourthRootOfHalf.raw)};
  const F0 half_q = r - kFourthRootOfHalf;
  const F0 q = half_q + half_q;
  const F0 q2 = q * q;
  const F0 numerator = q * r + q * q2 * kAlphaNumerator;
  const F0 denominator_minus_one = p * (kAlphaConstant + q + kAlphaDenominator * q2) + kAlphaFactor * q;
  const F0 reciprocal = one_over_one_plus_x_for_x_in_0_1(denominator_minus_one);
  return rescale<kOut>(exponent * kLog2 + rescale<kAccumulatorBits>(numerator) * reciprocal);
}

struct Reciprocal {
  Fixed<std::int32_t, 0> value;  // the reciprocal of x scaled into [1, 2)
  int bits_over_unit = 0;        // the binary logarithm of that scale: 1 / x = value * 2^-bits_over_unit
};

// The reciprocal of x > 0, a number with `integer_bits` integer bits (not counting the sign).
inline Reciprocal reciprocal_of(std::int32_t x, int integer_bits) {
  const auto bits = static_cast<std::uint32_t>(x);
  const int headroom_plus_one = std::countl_zero(bits);
  const std::uint32_t normalized = headroom_plus_one < 32 ? bits << headroom_plus_one : 0;
  const auto minus_one = static_cast<std::int32_t>(normalized - (std::uint32_t{1} << 31));
  return {one_over_one_plus_x_for_x_in_0_1(Fixed<std::int32_t, 0>{minus_one}), integer_bits - headroom_plus_one};
}

// 1 / sqrt(input) = mantissa * 2^(shift - 31); 0 and 1 both give (just under) 1.
// Precondition: input >= 0. `shift` follows Multiplier's sign: negative is to the right.
inline Multiplier inverse_square_root(std::int32_t input) {
  if (input <= 1) return {std::numeric_limits<std::int32_t>::max(), 0};
  int right_shift = 11;
  while (input >= (1 << 29)) {
    input /= 4;
    ++right_shift;
  }
  // Scaled by powers of 4 into [2^27, 2^29).
  const int left_shift_pairs = (std::countl_zero(static_cast<std::uint32_t>(input)) - 1) / 2 - 1;
  right_shift -= left_shift_pairs;
  input <<= 2 * left_shift_pairs;

  using F3 = Fixed<std::int32_t, 3>;
  const F3 half_input = {saturating_rounding_multiply_by_power_of_two(input >> 1, -1)};
  const F3 three_halves = F3::constant((1 << 28) + (1 << 27));
  F3 x = F3::one();
  for (int i = 0; i < 5; ++i) {  // Newton: x <- x * (3/2 - input/2 * x^2)
    const F3 x3 = rescale<3>(x * x * x);
    x = rescale<3>(three_halves * x - half_input * x3);
  }
  const Fixed<std::int32_t, 0> root_of_half = {1518500250};
  std::int32_t mantissa = (x * root_of_half).raw;
  if (right_shift < 0) {
    mantissa = wrapping_shift_left(mantissa, std::min(-right_shift, 31));
    right_shift = 0;
  }
  return {mantissa, -right_shift};
}

// round-half-away down-scaling of a 32-bit mantissa to 16 bits, saturating at the top.
inline std::int16_t mantissa_to_16_bits(std::int32_t mantissa) {
  constexpr std::int32_t kHalf = 1 << 15;
  if (mantissa >= std::numeric_limits<std::int32_t>::max() - kHalf) return std::numeric_limits<std::int16_t>::max();
  return static_cast<std::int16_t>((mantissa + kHalf) >> 16);
}

}  // namespace reef::numeric

// SPDX-License-Identifier: Apache-2.0
// IEEE binary16 and bfloat16 to and from float32. To half: nearest, ties to even, NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace reef::numeric {

inline float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  std::uint32_t exponent = (half >> 10) & 0x1F;
  std::uint32_t fraction = half & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {
    if (fraction == 0) return std::bit_cast<float>(sign);
    exponent = 1;
    while ((fraction & 0x400) == 0) {  // subnormal: normalize
      fraction <<= 1;
      --exponent;
    }
    fraction &= 0x3FF;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
}

inline std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  const std::uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<std::uint16_t>(sign | 0x7E00);   // NaN
  if (magnitude >= 0x477FF000) return static_cast<std::uint16_t>(sign | 0x7C00);  // rounds to infinity
  if (magnitude < 0x33000001) return sign;                                        // rounds to zero
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t mantissa = exponent ? (magnitude & 0x7FFFFF) | 0x800000 : magnitude & 0x7FFFFF;
  const std::uint32_t shift = exponent < 113 ? 126 - exponent : 13;  // subnormal halves keep fewer bits
  std::uint32_t result = mantissa >> shift;
  const std::uint32_t remainder = mantissa & ((1u << shift) - 1);
  const std::uint32_t middle = 1u << (shift - 1);
  if (remainder > middle || (remainder == middle && (result & 1))) ++result;
  if (exponent >= 113) result += (exponent - 113) << 10;  // the implicit bit adds the missing 1
  return static_cast<std::uint16_t>(sign | result);
}

inline float bfloat16_to_float(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

inline std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>((bits >> 16) | 0x40);  // NaN
  return static_cast<std::uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

}  // namespace reef::numeric

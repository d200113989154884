// SPDX-License-Identifier: Apache-2.0
// The Edge TPU's tensor unit on a sum before it is stored: THE definition, beside chip_requantize.h.
//
//   sum + constant + bias (saturated to int32) -> float32 -> * scale -> clamp -> [table] -> round half to even
//   -> + zero point -> saturate to 8 or 16 bits
//
// How it is known: whole compiled programs executed with these rules give their source models' outputs, and for
// convolutions poses recorded from a real device to the last digit (docs/hardware/README.md). Nothing was run on a
// chip. Choices that no evidence settles, each named where it is made:
//   - the sum saturates instead of wrapping (pad cells have a bias of -2^31; nothing else comes near)
//   - tables are evaluated by Horner's rule, every step rounded to float32, never fused
//   - denormal numbers are kept
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/at.h"

namespace reef::numeric {

// Eight polynomials of degree 4 and the seven arguments where one gives way to the next.
struct ChipTable {
  std::array<std::array<float, 5>, 8> segments{};  // constant first
  std::array<float, 7> breaks{};

  float at(float x) const {
    std::size_t segment = 0;
    while (segment < breaks.size() && x >= breaks[segment]) ++segment;
    const auto& c = segments[segment];
    float y = c[4];
    for (int power = 3; power >= 0; --power) y = y * x + c[reef::at(power)];
    return y;
  }
};

// 1/sqrt(x) through a table made for [1, 4): x = m * 4^k, result table(m) * 2^-k. What the chip gives for x <= 0 is not
// known; here the largest 16-bit number.
inline float chip_reciprocal_root(const ChipTable& table, float x) {
  if (!(x > 0)) return 65535.0f;
  int exponent = std::ilogb(x);
  exponent = (exponent - (exponent & 1)) / 2;  // floor of half
  const float mantissa = std::ldexp(x, -2 * exponent);
  return std::ldexp(table.at(mantissa), -exponent);
}

inline std::int32_t chip_saturate(std::int64_t sum) {
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(sum, std::numeric_limits<std::int32_t>::min(),
                                                            std::numeric_limits<std::int32_t>::max()));
}

// Rounded half to even, plus the zero point, within 0..limit. Not a number: 0.
inline std::int32_t chip_round(float value, std::int32_t zero_point, std::int32_t limit) {
  const double rounded = static_cast<double>(std::nearbyint(value)) + zero_point;
  if (!(rounded > 0)) return 0;
  return rounded >= limit ? limit : static_cast<std::int32_t>(rounded);
}

}  // namespace reef::numeric

// SPDX-License-Identifier: Apache-2.0
// Functions of one quantized number as tables.
//
// An 8-bit input has 256 values: the table holds the answer for each, computed once in float. A 16-bit input is looked
// up by its upper 9 bits in a table of 513 samples and interpolated linearly by its lower 7; the samples are shifted by
// half of the error that interpolation makes in the middle of the step, which halves the largest error.
//
// Both follow TFLite (internal/common.h, LUTPopulate and LUTLookup) rounding by rounding; the answers also depend on
// the C library's exp, tanh ..., as TFLite's do.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/at.h"
#include "numeric/fixed_point.h"

namespace reef::numeric {

// Converts as the x86 instruction does: truncation, and INT32_MIN for NaN and whatever does not fit. TFLite leaves
// these cases to the machine; its recorded results come from x86.
template <typename Float>
std::int32_t truncate_to_int32(Float x) {
  return x >= Float{-2147483648.0} && x < Float{2147483648.0} ? static_cast<std::int32_t>(x)
                                                              : std::numeric_limits<std::int32_t>::min();
}

// The affine meaning of a quantized number: real = scale * (q - zero_point).
struct Affine {
  float scale = 1;
  std::int32_t zero_point = 0;
};

// Indexed by the input's bit pattern: table[static_cast<std::uint8_t>(q)].
template <typename T>
using Table8 = std::array<T, 256>;

template <typename T, typename Function>
Table8<T> make_table8(Affine input, Affine output, Function function) {
  static_assert(sizeof(T) == 1);
  Table8<T> table;
  const float inverse_scale = 1 / output.scale;
  for (std::int32_t q = std::numeric_limits<T>::min(); q <= std::numeric_limits<T>::max(); ++q) {
    const float real = input.scale * static_cast<float>(q - input.zero_point);
    const float rounded = std::round(function(real) * inverse_scale);
    constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    const float shifted = rounded + static_cast<float>(output.zero_point);
    // Written so that NaN becomes the lowest number.
    table[static_cast<std::uint8_t>(q)] = static_cast<T>(shifted > kLow ? std::min(shifted, kHigh) : kLow);
  }
  return table;
}

using Table16 = std::array<std::int16_t, 513>;

// `Float` is the type of the calculation: float for ops, double for SOFTMAX's own tables, as in TFLite. The zero points
// shift the range of the input, but (as in TFLite) the output's only scales it; they are 0 in every op that uses this.
template <typename Float, typename Function>
Table16 make_table16(Float input_scale, std::int32_t input_zero_point, Float output_scale,
                     std::int32_t output_zero_point, Function function) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int16_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int16_t>::max();
  constexpr int kSteps = 512;
  const Float input_min = input_scale * static_cast<Float>(kMin - input_zero_point);
  const Float input_max = input_scale * static_cast<Float>(kMax - input_zero_point);
  const Float output_min = output_scale * static_cast<Float>(kMin - output_zero_point);
  const Float output_max = output_scale * static_cast<Float>(kMax - output_zero_point);
  const Float step = (input_max - input_min) / kSteps;
  const Float half_step = step / 2;
  const Float inverse_scale = static_cast<Float>(kMax - kMin + 1) / (output_max - output_min);
  const auto saturated = [](Float x) {
    const Float low = static_cast<Float>(kMin), high = static_cast<Float>(kMax);
    const Float floored = x < low ? low : x;  // NaN passes both comparisons; its low 16 bits are 0
    const Float limited = high < floored ? high : floored;
    return static_cast<std::int16_t>(truncate_to_int32(limited));
  };

  Table16 table;
  for (int i = 0; i < kSteps; ++i) {
    const Float start = input_min + static_cast<Float>(i) * step;
    const Float value = function(start);
    const Float middle = function(start + half_step);
    const Float next = function(input_min + static_cast<Float>(i + 1) * step);
    const Float sample = std::round(value * inverse_scale);
    const Float interpolated = std::round((next * inverse_scale + sample) / 2);
    const Float error = interpolated - std::round(middle * inverse_scale);
    table[at(i)] = saturated(sample - std::round(error / 2));
  }
  table[kSteps] = saturated(std::round(function(input_max) * inverse_scale));
  return table;
}

inline std::int16_t look_up(std::int16_t x, const Table16& table) {
  const auto index = static_cast<std::size_t>(256 + (x >> 7));
  const int offset = x & 0x7F;
  const auto slope = static_cast<std::int16_t>(table[index + 1] - table[index]);
  return static_cast<std::int16_t>(table[index] + ((slope * offset + 64) >> 7));
}

}  // namespace reef::numeric

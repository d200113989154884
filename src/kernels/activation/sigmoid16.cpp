// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/sigmoid16.h"

#include <array>
#include <cmath>

#include "numeric/fixed_point.h"
#include "numeric/lookup_table.h"

namespace reef::kernels {
namespace {

using numeric::wrapping_add;
using numeric::wrapping_mul;

// logistic(i / 24) in units of 2^-16, each sample raised by half of what linear interpolation to the next one loses in
// the middle; the last one is the end of the curve.
std::array<std::uint32_t, 256> make_logistic_table() {
  const auto logistic = [](double x) { return 65536.0 / (1.0 + std::exp(-x / 24.0)); };
  std::array<std::uint32_t, 256> table;
  for (int i = 0; i < 255; ++i) {
    const double sample = logistic(i);
    const double lost = logistic(i + 0.5) - (sample + logistic(i + 1)) / 2;
    table[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(std::lround(sample + lost / 2));
  }
  table[255] = 65535;
  return table;
}

const std::array<std::uint32_t, 256>& logistic_table() {
  static const std::array<std::uint32_t, 256> table = make_logistic_table();
  return table;
}

// The input at a scale of 1 / (3 * 4096).
std::int32_t scaled(std::int16_t x, Sigmoid16Scaling scaling) {
  const std::int32_t round = scaling.right_shift > 0 ? 1 << (scaling.right_shift - 1) : 0;
  return wrapping_add(wrapping_mul(x, scaling.multiplier), round) >> scaling.right_shift;
}

std::uint32_t magnitude(std::int32_t x) {
  return x < 0 ? 0u - static_cast<std::uint32_t>(x) : static_cast<std::uint32_t>(x);
}

}  // namespace

bool is_power_of_two_scale(float scale, int& exponent) {
  if (!(scale > 0)) return false;
  const float log2 = std::log(scale) * (1.0f / std::log(2.0f));
  const float rounded = std::round(log2);
  exponent = numeric::truncate_to_int32(rounded);
  return std::abs(log2 - rounded) < 1e-3f;
}

Sigmoid16Scaling sigmoid16_scaling(float input_scale, unsigned exact_left_shifts) {
  int exponent = 0;
  if (is_power_of_two_scale(input_scale, exponent)) {
    const int left_shift = exponent + 12;
    if ((left_shift == 0 || left_shift == 1) && ((exact_left_shifts >> left_shift) & 1)) return {3 << left_shift, 0};
  }
  double multiplier = input_scale * 4096.0 * 3.0;
  Sigmoid16Scaling scaling;
  while (multiplier <= 32767.0 / 2.0 && scaling.right_shift <= 30) {
    ++scaling.right_shift;
    multiplier *= 2.0;
  }
  scaling.multiplier = numeric::truncate_to_int32(multiplier);
  return scaling;
}

void logistic16(const std::int16_t* input, std::int64_t count, Sigmoid16Scaling scaling, std::int16_t* output) {
  const auto& table = logistic_table();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t x = scaled(input[i], scaling);
    const std::uint32_t distance = magnitude(x);
    const std::uint32_t index = distance >> 9;
    std::uint32_t result = 0x7FFFu << 10;
    if (index < 255) {
      result = (table[index] << 9) + (distance & 0x1FF) * (table[index + 1] - table[index]);
    }
    result = x >= 0 ? result + (1u << 9) : (1u << 25) - result + (1u << 9) - 1;
    output[i] = static_cast<std::int16_t>(result >> 10);
  }
}

void tanh16(const std::int16_t* input, std::int64_t count, Sigmoid16Scaling scaling, std::int16_t* output) {
  const auto& table = logistic_table();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int32_t x = scaled(input[i], scaling);
    const std::uint32_t distance = magnitude(x);
    const std::uint32_t index = distance >> 8;
    auto result = static_cast<std::int32_t>(0xFFFFu << 8);
    if (index < 255) {
      result = static_cast<std::int32_t>((table[index] << 8) + (distance & 0xFF) * (table[index + 1] - table[index]));
    }
    result = x >= 0 ? result - (1 << 23) + (1 << 7) : -result + (1 << 23) + (1 << 7) - 1;
    output[i] = static_cast<std::int16_t>(result >> 8);
  }
}

}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
// For tests: random 8-bit operands and scalings with a liking for extremes.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/conv/random_conv.h"
#include "kernels/matmul/requantize.h"

namespace reef::kernels {

// Mostly anything, sometimes one of the ends everywhere.
template <typename T>
std::vector<T> random_bytes(std::mt19937& random, std::int64_t count) {
  const std::int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const std::int64_t kind = pick(random, 0, 5);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) value = static_cast<T>(kind == 0 ? low : kind == 1 ? high : pick(random, low, high));
  return values;
}

template <typename T>
std::int32_t random_zero_point(std::mt19937& random) {
  const std::int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const std::int64_t kind = pick(random, 0, 3);
  return static_cast<std::int32_t>(kind == 0 ? low : kind == 1 ? high : pick(random, low, high));
}

template <typename T>
Requantizer random_requantizer(std::mt19937& random, std::int64_t channels) {
  Requantizer q;
  std::vector<double> factors;
  const bool per_channel = pick(random, 0, 1) == 1;
  const double lowest_exponent = pick(random, 0, 3) == 0 ? -30 : -12;
  const std::int64_t kind = pick(random, 0, 9);  // factors of 1 and more; and so large that the reference loses bits
  const double highest_exponent = kind == 0 ? 3 : kind == 1 ? 24 : -0.01;
  std::uniform_real_distribution<double> exponent(lowest_exponent, highest_exponent);
  for (std::int64_t i = 0; i < (per_channel ? channels : 1); ++i) factors.push_back(std::exp2(exponent(random)));
  if (pick(random, 0, 2) == 0) {
    // Exact powers of two meet the borders between roundings all the time.
    for (double& factor : factors) factor = std::exp2(std::round(std::log2(factor)));
  }
  q.set_factors(pick(random, 0, 3) == 0 ? Rounding::kReal32 : Rounding::kFixedPoint32, factors);
  q.zero_point = random_zero_point<T>(random);
  q.lowest = pick(random, 0, 1) == 0 ? std::numeric_limits<T>::min() : q.zero_point;
  q.highest = std::numeric_limits<T>::max();
  return q;
}

}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
// Sums of products of vectors, in one fixed order of additions: sixteen partial sums, which compilers turn into vector
// instructions without being allowed to reorder anything.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace reef::learn {

inline float dot(const float* a, const float* b, std::size_t count) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  float rest = 0;
  for (; i < count; ++i) rest += a[i] * b[i];
  for (std::size_t step = kLanes / 2; step > 0; step /= 2) {
    for (std::size_t lane = 0; lane < step; ++lane) sums[lane] += sums[lane + step];
  }
  return sums[0] + rest;
}
inline float dot(std::span<const float> a, std::span<const float> b) { return dot(a.data(), b.data(), a.size()); }

// y += factor * x
inline void add_scaled(float factor, const float* x, float* y, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

template <typename T>
double length(const std::vector<T>& vector) {
  double sum = 0;
  for (const T value : vector) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// The vector divided by its length; all zeros stay zeros.
inline std::vector<float> normalized(std::span<const float> vector) {
  double sum = 0;
  for (const float value : vector) sum += static_cast<double>(value) * value;
  const double scale = sum > 0 ? 1 / std::sqrt(sum) : 0;
  std::vector<float> result;
  result.reserve(vector.size());
  for (const float value : vector) result.push_back(static_cast<float>(value * scale));
  return result;
}

}  // namespace reef::learn

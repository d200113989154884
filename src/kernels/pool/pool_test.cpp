// SPDX-License-Identifier: Apache-2.0
// Pools in vectors against the reference, which is what runs on the baseline target: random windows, extremes, on every
// target. Equal to the bit. (That the reference is TFLite's is shown by tests/vectors.)
#include "kernels/pool/pool.h"

#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

PoolGeometry random_pool(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<std::int64_t>(low, high)(random); };
  PoolGeometry g;
  g.batches = pick(1, 2);
  g.channels = pick(0, 3) == 0 ? pick(1, 300) : pick(1, 70);
  g.input_height = pick(1, 12);
  g.input_width = pick(0, 9) == 0 ? pick(100, 400) : pick(1, 12);
  g.window_height = pick(1, g.input_height);
  g.window_width = pick(1, g.input_width);
  g.stride_height = pick(1, 3);
  g.stride_width = pick(1, 3);
  g.pad_top = pick(0, g.window_height - 1);
  g.pad_left = pick(0, g.window_width - 1);
  g.output_height = (g.input_height + g.pad_top - 1) / g.stride_height + 1;
  g.output_width = (g.input_width + g.pad_left - 1) / g.stride_width + 1;
  return g;
}

template <typename T>
void compare(std::mt19937& random) {
  const PoolGeometry g = random_pool(random);
  const auto in_elements = static_cast<std::size_t>(g.batches * g.input_height * g.input_width * g.channels);
  const auto out_elements = static_cast<std::size_t>(g.batches * g.output_height * g.output_width * g.channels);
  std::vector<T> in(in_elements);
  const bool is_extreme = random() % 4 == 0;
  for (T& x : in) {
    x = static_cast<T>(static_cast<int>(random() % 256) - (std::is_unsigned_v<T> ? 0 : 128));
    if (is_extreme) x = random() % 16 == 0 ? x : static_cast<T>(std::is_unsigned_v<T> ? 255 : -128);
    if (std::is_floating_point_v<T> && random() % 50 == 0) x = std::numeric_limits<T>::quiet_NaN();
  }
  const PoolLimits<T> limits = random() % 2
                                   ? PoolLimits<T>{static_cast<T>(3), static_cast<T>(99)}
                                   : PoolLimits<T>{std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
  std::vector<T> averages, maxima;
  for_each_supported_target([&](SimdTarget target) {
    std::vector<T> average(out_elements), maximum(out_elements);
    const std::int64_t units = pool_units(g), cut = units / 3;
    average_pool(g, in.data(), limits, average.data(), 0, cut);
    average_pool(g, in.data(), limits, average.data(), cut, units);
    max_pool(g, in.data(), limits, maximum.data(), 0, cut);
    max_pool(g, in.data(), limits, maximum.data(), cut, units);
    if (averages.empty()) averages = average, maxima = maximum;
    EXPECT_EQ(std::memcmp(averages.data(), average.data(), out_elements * sizeof(T)), 0)
        << target_name(target) << ": " << g.window_height << "x" << g.window_width << " of " << g.channels
        << " channels";
    EXPECT_EQ(std::memcmp(maxima.data(), maximum.data(), out_elements * sizeof(T)), 0)
        << target_name(target) << ": " << g.window_height << "x" << g.window_width << " of " << g.channels
        << " channels";
  });
}

TEST(Pools, EqualTheReferenceOnEveryTarget) {
  std::mt19937 random(21);
  for (int trial = 0; trial < 100; ++trial) {
    compare<std::int8_t>(random);
    compare<std::uint8_t>(random);
    compare<float>(random);
    compare<std::int16_t>(random);
  }
}

}  // namespace
}  // namespace reef::kernels

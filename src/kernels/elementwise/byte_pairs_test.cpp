// SPDX-License-Identifier: Apache-2.0
// Fast sums, differences, products and tables of 8-bit numbers against their exact definitions: all 65,536 pairs, over
// random scalings with a liking for extremes, on every target. Equal to the bit. (That the definitions are TFLite's is
// shown by tests/vectors.)
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/elementwise/byte_pairs.h"
#include "kernels/elementwise/byte_table.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

constexpr int kTrials = 120;

double random_scale(std::mt19937& random) {
  std::uniform_real_distribution<double> exponent(-9, 2);
  const double scale = std::exp2(exponent(random));
  return random() % 4 == 0 ? std::exp2(std::round(std::log2(scale))) : scale;
}

template <typename T>
std::int32_t random_zero(std::mt19937& random) {
  const std::uint32_t kind = random() % 4;
  if (kind == 0) return std::numeric_limits<T>::min();
  if (kind == 1) return std::numeric_limits<T>::max();
  return static_cast<T>(random());
}

template <typename T>
BytePairs random_pairs(std::mt19937& random) {
  const double a = random_scale(random), b = random() % 3 == 0 ? a : random_scale(random),
               out = std::max(a, b) * std::exp2(random() % 5 - 2.5);
  const double common = 2 * std::max(a, b);
  Requantize result{{}, random_zero<T>(random), std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
  const std::uint32_t kind = random() % 6;
  if (kind < 3) {
    // Networks have factors below 1, others occur.
    result.factor = numeric::make_multiplier(random() % 4 == 0 ? std::exp2(random() % 20) * a : a * b / out);
    if (kind == 0) {
      const numeric::Multiplier positive =
          numeric::make_multiplier(random() % 4 == 0 ? std::exp2(random() % 20) : a / out);
      return BytePairs::prelu<T>(random_zero<T>(random), random_zero<T>(random), positive, result);
    }
    return BytePairs::product<T>(random_zero<T>(random), random_zero<T>(random), result);
  }
  // Ratios of a power of two meet the borders between results all the time.
  const double out_scale = random() % 3 == 0 ? std::max(a, b) * std::exp2(random() % 3) : out;
  result.factor = numeric::make_multiplier(common / (std::ldexp(1.0, 20) * out_scale));
  return BytePairs::sum<T>({random_zero<T>(random), 20, numeric::make_multiplier(a / common)},
                           {random_zero<T>(random), 20, numeric::make_multiplier(b / common)}, random() % 2 == 0,
                           result);
}

template <typename T>
void compare_all() {
  std::vector<std::uint8_t> all(256), got(256), want(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i);
  for_each_supported_target([&](SimdTarget target) {
    std::mt19937 random(11);
    int fast = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const BytePairs pairs = random_pairs<T>(random);
      fast += pairs.real().is_fast;
      for (int b = 0; b < 256; ++b) {
        const auto other = static_cast<std::uint8_t>(b);
        for (std::size_t i = 0; i < all.size(); ++i) want[i] = pairs.exact(all[i], other);
        pairs.row(all.data(), 1, &other, 0, got.data(), 256);
        ASSERT_EQ(want, got) << target_name(target) << ", trial " << trial << ", b = " << b;
        for (std::size_t i = 0; i < all.size(); ++i) want[i] = pairs.exact(other, all[i]);
        pairs.row(&other, 0, all.data(), 1, got.data(), 256);
        ASSERT_EQ(want, got) << target_name(target) << ", trial " << trial << ", a = " << b;
      }
      std::vector<std::uint8_t> mixed(all), results(253);
      for (std::uint8_t& value : mixed) value = static_cast<std::uint8_t>(random());
      pairs.row(all.data(), 1, mixed.data(), 1, results.data(), 253);
      for (std::size_t i = 0; i < results.size(); ++i) ASSERT_EQ(results[i], pairs.exact(all[i], mixed[i]));
      // Short rows, in the place of an operand.
      for (std::int64_t count = 1; count < 70; ++count) {
        std::vector<std::uint8_t> place(mixed.begin(), mixed.begin() + count);
        pairs.row(all.data(), 1, place.data(), 1, place.data(), count);
        ASSERT_TRUE(std::equal(place.begin(), place.end(), results.begin())) << target_name(target) << ", " << count;
      }
    }
    EXPECT_GT(fast, kTrials / 2);
  });
}

TEST(BytePairs, Int8EqualsTheExactDefinition) { compare_all<std::int8_t>(); }
TEST(BytePairs, Uint8EqualsTheExactDefinition) { compare_all<std::uint8_t>(); }

TEST(ByteTable, LooksEveryByteUp) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(12);
    ByteTable table;
    for (std::uint8_t& value : table) value = static_cast<std::uint8_t>(random());
    for (const std::size_t count : {0, 1, 63, 64, 65, 1000}) {
      std::vector<std::uint8_t> in(count), out(count);
      for (std::size_t i = 0; i < count; ++i) in[i] = static_cast<std::uint8_t>(i < 256 ? i : random());
      look_up_bytes(in.data(), static_cast<std::int64_t>(count), table, out.data());
      for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(out[i], table[in[i]]) << target_name(target);
    }
  });
}

}  // namespace
}  // namespace reef::kernels

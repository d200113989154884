// SPDX-License-Identifier: Apache-2.0
// Fast softmax of bytes against the reference: rows of all lengths, extremes, sums that overflow, on every target.
// Equal to the bit. (That the reference is TFLite's is shown by tests/vectors.)
#include "kernels/activation/softmax_bytes.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

template <typename In, typename Out>
void compare(std::mt19937& random, std::int64_t depth, std::int64_t count = 3) {
  const double scale = std::exp2(std::uniform_real_distribution<double>(-12, 6)(random));
  const auto scaling = difference_scaling(1.0, scale);
  ASSERT_TRUE(scaling.has_value());
  const SoftmaxByteTable table(*scaling);
  const auto spread = static_cast<unsigned>(1 + random() % 256);  // of the row's values
  const Rows rows{0, count, depth};
  std::vector<In> in(static_cast<std::size_t>(rows.end * depth));
  for (In& x : in) x = static_cast<In>(random() % spread);
  std::vector<Out> got(in.size()), want(in.size());
  const bool fits = softmax_8bit(in.data(), rows, *scaling, want.data());
  EXPECT_EQ(softmax_bytes(in.data(), rows, table, got.data()), fits) << depth << " elements, scale " << scale;
  if (!fits) return;
  EXPECT_EQ(got, want) << depth << " elements, scale " << scale;
}

TEST(SoftmaxBytes, EqualTheReference) {
  for_each_supported_target([](SimdTarget target) {
    SCOPED_TRACE(target_name(target));
    std::mt19937 random(17);
    for (std::int64_t depth = 1; depth < 70; ++depth) {
      compare<std::int8_t, std::int8_t>(random, depth);
      compare<std::uint8_t, std::uint8_t>(random, depth);
      compare<std::int8_t, std::int16_t>(random, depth);
      compare<std::uint8_t, std::int16_t>(random, depth);
    }
    for (const std::int64_t depth : {1001, 4090, 4096, 5000, 40000}) {
      for (int i = 0; i < 8; ++i) compare<std::int8_t, std::int8_t>(random, depth);
    }
  });
}

// Many rows of two elements are looked up.
TEST(SoftmaxBytes, ManyPairsEqualTheReference) {
  for_each_supported_target([](SimdTarget target) {
    SCOPED_TRACE(target_name(target));
    std::mt19937 random(18);
    for (int i = 0; i < 12; ++i) {
      compare<std::int8_t, std::int8_t>(random, 2, 5000);
      compare<std::uint8_t, std::uint8_t>(random, 2, 5000);
      compare<std::int8_t, std::int16_t>(random, 2, 5000);
      compare<std::uint8_t, std::int16_t>(random, 2, 5000);
    }
  });
}

TEST(SoftmaxBytes, SumsThatOverflowAreToldApart) {
  const SoftmaxByteTable table(*difference_scaling(1.0, 0.1));
  for_each_supported_target([&](SimdTarget) {
    for (const std::int64_t depth : {4095, 4097, 20000}) {
      const std::vector<std::int8_t> in(static_cast<std::size_t>(depth), 5);
      std::vector<std::int8_t> got(in.size()), want(in.size());
      const bool fits = softmax_8bit(in.data(), {0, 1, depth}, *difference_scaling(1.0, 0.1), want.data());
      EXPECT_EQ(fits, depth < 4096);
      EXPECT_EQ(softmax_bytes(in.data(), {0, 1, depth}, table, got.data()), fits);
      if (!fits) continue;
      EXPECT_EQ(got, want);
    }
  });
}

}  // namespace
}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
// Inner products against sums in 64 bits: all short lengths, extremes, on every target.
#include "kernels/recurrent/int_vectors.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

TEST(IntVectors, InnerProductsAreExact) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(51);
    for (std::int64_t count = 0; count < 120; ++count) {
      const std::int64_t length = count < 100 ? count : 97 * count;  // some long ones
      std::vector<std::int16_t> a(static_cast<std::size_t>(length));
      std::vector<std::int8_t> b(a.size());
      const bool is_extreme = random() % 3 == 0;
      std::int64_t want = 0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<std::int16_t>(is_extreme ? -32768 : static_cast<int>(random() % 65536) - 32768);
        b[i] = static_cast<std::int8_t>(is_extreme ? -128 : static_cast<int>(random() % 256) - 128);
        want += std::int64_t{a[i]} * b[i];
      }
      EXPECT_EQ(int_dot_product(a.data(), b.data(), length), want) << target_name(target) << ", " << length;
    }
  });
}

}  // namespace
}  // namespace reef::kernels

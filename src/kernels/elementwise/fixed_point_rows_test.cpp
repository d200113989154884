// SPDX-License-Identifier: Apache-2.0
// Fixed-point scaling in vectors against numeric::multiply, one number at a time: sums of all sizes, factors of all
// sizes, halves; and exact row products. On every target, equal to the bit.
#include "kernels/elementwise/fixed_point_rows.h"

#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/matmul/int_rows.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

std::int32_t expected(const ByteRequantize& q, std::int32_t sum) {
  return numeric::clamp(numeric::wrapping_add(numeric::multiply(sum, q.factor), q.zero_point), q.lowest, q.highest);
}

template <typename T>
void compare_rows(std::mt19937& random, SimdTarget target) {
  for (int shift = -31; shift <= 30; ++shift) {
    ByteRequantize q{{static_cast<std::int32_t>((1u << 30) + random() % (1u << 30)), shift}, 0, 0, 0};
    if (random() % 4 == 0) q.factor.mantissa = 1 << 30;  // halves are frequent then
    q.zero_point = static_cast<T>(random());
    q.lowest = std::numeric_limits<T>::min() + static_cast<std::int32_t>(random() % 20);
    q.highest = std::numeric_limits<T>::max() - static_cast<std::int32_t>(random() % 20);
    std::vector<std::int64_t> sums(1 + random() % 60);
    for (std::int64_t& sum : sums) {
      sum = static_cast<std::int64_t>((std::uint64_t{random()} << 32) | random());  // the upper half is ignored
      if (random() % 2) sum = static_cast<std::int32_t>(random()) >> random() % 31;
    }
    std::vector<T> out(sums.size());
    requantize_row(q, sums.data(), static_cast<std::int64_t>(sums.size()), out.data());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      ASSERT_EQ(out[i], static_cast<T>(expected(q, static_cast<std::int32_t>(sums[i]))))
          << target_name(target) << ", shift " << shift << ", sum " << sums[i];
    }
  }
}

TEST(FixedPointRows, SumsAreScaledAsOneByOne) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(41);
    for (int trial = 0; trial < 30; ++trial) {
      compare_rows<std::int8_t>(random, target);
      compare_rows<std::uint8_t>(random, target);
    }
  });
}

TEST(FixedPointRows, SquaredDifferencesOfAllPairs) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(42);
    for (int trial = 0; trial < 20; ++trial) {
      SquaredDifference s;
      const auto random_factor = [&] {
        return numeric::Multiplier{static_cast<std::int32_t>((1u << 30) + random() % (1u << 30)),
                                   -static_cast<int>(random() % (random() % 2 ? 4 : 32))};
      };
      s.x_scaling = {static_cast<std::int8_t>(random()), 7, random_factor()};
      s.y_scaling = {static_cast<std::int8_t>(random()), 7, random_factor()};
      s.result = {{static_cast<std::int32_t>((1u << 30) + random() % (1u << 30)), -static_cast<int>(random() % 32)},
                  static_cast<std::int8_t>(random()),
                  -128,
                  127};
      std::vector<std::int8_t> all(256), place(256);
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int8_t>(i);
      for (const std::int8_t y : all) {
        place = all;
        s.row(place.data(), 1, &y, 0, place.data(), 253);  // in place
        for (std::size_t i = 0; i < 253; ++i) {
          const std::int32_t difference = s.x_scaling(static_cast<std::int8_t>(i)) - s.y_scaling(y);
          ASSERT_EQ(place[i], expected(s.result, difference * difference)) << target_name(target);
        }
      }
    }
  });
}

TEST(IntRows, ProductsAreExact) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(43);
    for (int trial = 0; trial < 300; ++trial) {
      const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 7),
                         columns = 1 + static_cast<std::int64_t>(random() % 11);
      const std::int64_t run = trial % 3 == 0   ? kRunOf8BitProducts
                               : trial % 3 == 1 ? kRunOf16By8BitProducts
                                                : kRunOf16BitProducts;
      PackedRows a(rows, 1 + static_cast<std::int64_t>(random() % (trial % 30 == 0 ? 9000 : 700))), b(columns, a.depth);
      const bool is_extreme = random() % 3 == 0;
      const int a_size = run == kRunOf8BitProducts ? 255 : 32768, b_size = run == kRunOf16BitProducts  ? 32768
                                                                           : run == kRunOf8BitProducts ? 255
                                                                                                       : 128;
      const auto number = [&](int size) {
        return static_cast<std::int16_t>(
            is_extreme ? -size : static_cast<int>(random() % static_cast<unsigned>(2 * size)) - size);
      };
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t k = 0; k < a.depth; ++k) a.row(r)[k] = number(a_size);
      for (std::int64_t c = 0; c < columns; ++c)
        for (std::int64_t k = 0; k < b.depth; ++k) b.row(c)[k] = number(b_size);
      std::vector<std::int64_t> sums(static_cast<std::size_t>(rows * columns), 5);
      add_row_products(a.row(0), a.stride, rows, b.row(0), b.stride, columns, a.stride, run, sums.data(), columns);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < columns; ++c) {
          std::int64_t want = 5;
          for (std::int64_t k = 0; k < a.depth; ++k) want += std::int64_t{a.row(r)[k]} * b.row(c)[k];
          ASSERT_EQ(sums[static_cast<std::size_t>(r * columns + c)], want)
              << target_name(target) << ", depth " << a.depth;
        }
      }
    }
  });
}

}  // namespace
}  // namespace reef::kernels

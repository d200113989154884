// SPDX-License-Identifier: Apache-2.0
// The first of the largest and smallest bytes against the standard library's, for rows of all short lengths.
#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/reduce/extreme_byte.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

template <typename T>
void compare(std::mt19937& random, std::size_t count) {
  // Few different values, so that equal ones are common.
  std::vector<T> row(count);
  for (T& value : row) value = static_cast<T>(random() % 5 * 60);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(row.data());
  const auto length = static_cast<std::int64_t>(count);
  EXPECT_EQ(first_extreme_byte(bytes, length, std::is_signed_v<T>, true),
            std::max_element(row.begin(), row.end()) - row.begin());
  EXPECT_EQ(first_extreme_byte(bytes, length, std::is_signed_v<T>, false),
            std::min_element(row.begin(), row.end()) - row.begin());
}

TEST(ExtremeByte, IsTheFirstOfTheLargestOrSmallest) {
  std::mt19937 random(13);
  for (std::size_t count = 1; count < 80; ++count) {
    for (int trial = 0; trial < 20; ++trial) {
      compare<std::int8_t>(random, count);
      compare<std::uint8_t>(random, count);
    }
  }
}

TEST(ExtremeByte, ManyRowsAreAsOneByOne) {
  std::mt19937 random(14);
  for_each_supported_target([&](SimdTarget target) {
    for (std::int64_t count = 1; count < 40; ++count) {
      std::vector<std::uint8_t> rows(static_cast<std::size_t>(9 * count));
      for (std::uint8_t& value : rows) value = static_cast<std::uint8_t>(random() % 5 * 60);
      for (int kind = 0; kind < 4; ++kind) {
        std::vector<std::int32_t> narrow(9);
        std::vector<std::int64_t> wide(9);
        first_extreme_bytes(rows.data(), 9, count, kind & 1, kind & 2, narrow.data());
        first_extreme_bytes(rows.data(), 9, count, kind & 1, kind & 2, wide.data());
        for (std::size_t r = 0; r < 9; ++r) {
          const auto* row = rows.data() + r * static_cast<std::size_t>(count);
          EXPECT_EQ(wide[r], first_extreme_byte(row, count, kind & 1, kind & 2))
              << target_name(target) << ", " << count;
          EXPECT_EQ(narrow[r], wide[r]);
        }
      }
    }
  });
}

}  // namespace
}  // namespace reef::kernels

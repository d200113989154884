// SPDX-License-Identifier: Apache-2.0
// The curves of integer LSTM cells on every target, before and after they have become tables, against the scalar
// fixed-point functions: all 65,536 numbers. (That the functions are TFLite's is shown by tests/vectors.)
#include "kernels/recurrent/fixed_curves.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/simd/each_target.h"
#include "numeric/fixed_point_math.h"

namespace reef::kernels {
namespace {

constexpr int kRounds = 3;  // the first is by the function, the others by tables where there are such

std::vector<std::int16_t> all_numbers() {
  std::vector<std::int16_t> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int16_t>(i);
  return all;
}

TEST(FixedCurves, LogisticOfAllNumbers) {
  const std::vector<std::int16_t> all = all_numbers();
  for_each_supported_target([&](SimdTarget target) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::int16_t> values = all;
      logistic_q3(values.data(), static_cast<std::int64_t>(values.size()));
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(values[i], numeric::logistic(numeric::Fixed<std::int16_t, 3>{all[i]}).raw)
            << target_name(target) << ", round " << round << ", of " << all[i];
      }
    }
  });
}

template <int kBits>
void compare_tanh() {
  const std::vector<std::int16_t> all = all_numbers();
  for_each_supported_target([&](SimdTarget target) {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<std::int16_t> result(all.size());
      tanh_q15(kBits, all.data(), static_cast<std::int64_t>(all.size()), result.data());
      for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(result[i], numeric::tanh(numeric::Fixed<std::int16_t, kBits>{all[i]}).raw)
            << target_name(target) << ", " << kBits << " bits, round " << round << ", of " << all[i];
      }
    }
  });
}

TEST(FixedCurves, TanhOfAllNumbers) {
  compare_tanh<0>();
  compare_tanh<1>();
  compare_tanh<2>();
  compare_tanh<3>();
  compare_tanh<4>();
  compare_tanh<5>();
  compare_tanh<6>();
}

// The rest that does not fill a vector is computed, and nothing is written after it.
TEST(FixedCurves, AnyCount) {
  for_each_supported_target([](SimdTarget target) {
    for (std::int64_t count = 0; count < 70; ++count) {
      std::vector<std::int16_t> values(100), result(100, 77);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int16_t>(i * 601);
      tanh_q15(3, values.data(), count, result.data());
      std::vector<std::int16_t> in_place = values;
      logistic_q3(in_place.data(), count);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool is_in = static_cast<std::int64_t>(i) < count;
        const auto tanh = numeric::tanh(numeric::Fixed<std::int16_t, 3>{values[i]}).raw;
        const auto logistic = numeric::logistic(numeric::Fixed<std::int16_t, 3>{values[i]}).raw;
        ASSERT_EQ(result[i], is_in ? tanh : 77) << target_name(target) << ", " << count;
        ASSERT_EQ(in_place[i], is_in ? logistic : values[i]) << target_name(target) << ", " << count;
      }
    }
  });
}

}  // namespace
}  // namespace reef::kernels

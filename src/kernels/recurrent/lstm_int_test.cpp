// SPDX-License-Identifier: Apache-2.0
// The curves of integer LSTM cells, before and after they have become tables, against the fixed-point functions: all
// 65,536 numbers. (That the functions are TFLite's is shown by tests/vectors.)
#include "kernels/recurrent/lstm_int.h"

#include <vector>

#include <gtest/gtest.h>

#include "numeric/fixed_point_math.h"

namespace reef::kernels {
namespace {

std::vector<std::int16_t> all_numbers() {
  std::vector<std::int16_t> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int16_t>(i);
  return all;
}

TEST(LstmCurves, LogisticOfAllNumbers) {
  const std::vector<std::int16_t> all = all_numbers();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::int16_t> values = all;
    logistic_q3(values.data(), static_cast<std::int64_t>(values.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(values[i], numeric::logistic(numeric::Fixed<std::int16_t, 3>{all[i]}).raw) << "round " << round;
    }
  }
}

TEST(LstmCurves, TanhOfAllNumbers) {
  const std::vector<std::int16_t> all = all_numbers();
  for (int round = 0; round < 3; ++round) {
    std::vector<std::int16_t> of_3(all.size()), of_5(all.size());
    tanh_q15(3, all.data(), static_cast<std::int64_t>(all.size()), of_3.data());
    tanh_q15(5, all.data(), static_cast<std::int64_t>(all.size()), of_5.data());
    for (std::size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(of_3[i], numeric::tanh(numeric::Fixed<std::int16_t, 3>{all[i]}).raw) << "round " << round;
      ASSERT_EQ(of_5[i], numeric::tanh(numeric::Fixed<std::int16_t, 5>{all[i]}).raw) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace reef::kernels

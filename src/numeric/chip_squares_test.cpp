// SPDX-License-Identifier: Apache-2.0
#include "numeric/chip_squares.h"

#include <gtest/gtest.h>

#include "numeric/chip_tables.h"

namespace reef::numeric {
namespace {

TEST(ChipSquares, DifferencesOfEqualScalesAreExact) {
  const auto numbers = chip_squared_difference(0.05f, 3, 0.05f, 200, 0.1f);
  ASSERT_TRUE(numbers.has_value());
  EXPECT_EQ(numbers->a_weight, 1);
  EXPECT_EQ(numbers->b_weight, 1);
  EXPECT_EQ(numbers->difference_multiplier, 1.0f);
  EXPECT_NEAR(numbers->square_multiplier, 0.05 * 0.05 / 0.1, 1e-8);
}

// Whatever the scales, the largest difference takes at most 15 bits, and no fewer than it must.
TEST(ChipSquares, DifferencesFitSixteenBits) {
  for (const float ratio : {0.001f, 0.3f, 0.999f, 1.7f, 300.0f}) {
    for (const int zero : {0, 77, 255}) {
      const auto numbers = chip_squared_difference(0.02f, zero, 0.02f * ratio, 255 - zero, 1.0f);
      ASSERT_TRUE(numbers.has_value());
      double most = 0;
      for (const int a : {0, 255}) {
        for (const int b : {0, 255}) {
          most = std::max(
              most, std::fabs(double(numbers->a_weight) * (a - zero) - double(numbers->b_weight) * (b - (255 - zero))));
        }
      }
      EXPECT_LE(most * numbers->difference_multiplier, kMostWideDifference + 0.5) << ratio << " " << zero;
      if (numbers->difference_multiplier < 1) {
        EXPECT_GT(most * numbers->difference_multiplier, kMostWideDifference / 2) << ratio << " " << zero;
      }
    }
  }
}

TEST(ChipSquares, RefusesWhatIsNoScale) {
  EXPECT_FALSE(chip_squared_difference(0.0f, 0, 1.0f, 0, 1.0f).has_value());
  EXPECT_FALSE(chip_squared_difference(1.0f, 0, 1.0f, 0, -1.0f).has_value());
  EXPECT_FALSE(chip_squared_difference(1.0f, 300, 1.0f, 0, 1.0f).has_value());
}

// Both units of the root hold three digits over all sums that there can be.
TEST(ChipSquares, RootsAreFineEnough) {
  for (double sum = 1; sum < 2e9; sum *= 1.37) {
    const float one = sum < kRootSplit ? kCoarseRoot : kFineRoot;
    const double exact = one / std::sqrt(sum);
    const std::int32_t root = chip_round(chip_inverse_root(one).at(static_cast<float>(sum)), 0, 65535);
    EXPECT_LT(std::fabs(root - exact) / exact, 0.006) << sum;
    if (sum < 1e8) {
      EXPECT_LT(std::fabs(root - exact) / exact, 0.0015) << sum;
    }
  }
}

}  // namespace
}  // namespace reef::numeric

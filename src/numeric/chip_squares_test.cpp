// SPDX-License-Identifier: Apache-2.0
#include "numeric/chip_squares.h"

#include <gtest/gtest.h>

#include <cmath>

#include "numeric/chip_tables.h"

namespace reef::numeric {
namespace {

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

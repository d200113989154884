// SPDX-License-Identifier: Apache-2.0
// Requantization against its definition in exact arithmetic; against a real runtime it is tested through tests/vectors.
#include "numeric/fixed_point.h"

#include <random>

#include <gtest/gtest.h>

namespace reef::numeric {
namespace {

constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();

// gemmlowp's wording: a nudge by the product's sign, then truncation.
std::int32_t by_nudge(std::int32_t a, std::int32_t b) {
  const std::int64_t product = static_cast<std::int64_t>(a) * b;
  const std::int64_t nudge = product >= 0 ? (std::int64_t{1} << 30) : 1 - (std::int64_t{1} << 30);
  return static_cast<std::int32_t>((product + nudge) / (std::int64_t{1} << 31));
}

TEST(FixedPoint, HighMulEqualsTheNudgedDefinition) {
  std::mt19937 random(1);
  for (int i = 0; i < 200000; ++i) {
    const auto a = static_cast<std::int32_t>(random());
    const auto b = static_cast<std::int32_t>(random() >> (i % 32));
    ASSERT_EQ(saturating_rounding_doubling_high_mul(a, b), by_nudge(a, b)) << a << " * " << b;
  }
  for (const std::int32_t b : {1, -1, 3, -3}) {  // exact halves
    EXPECT_EQ(saturating_rounding_doubling_high_mul(1 << 30, b), by_nudge(1 << 30, b));
  }
  EXPECT_EQ(saturating_rounding_doubling_high_mul(kMin, kMin), kMax);
}

TEST(FixedPoint, PowerOfTwoDivisionRoundsHalvesAwayFromZero) {
  EXPECT_EQ(rounding_divide_by_power_of_two(5, 1), 3);
  EXPECT_EQ(rounding_divide_by_power_of_two(-5, 1), -3);
  EXPECT_EQ(rounding_divide_by_power_of_two(-4, 3), -1);
  EXPECT_EQ(rounding_divide_by_power_of_two(7, 0), 7);
  EXPECT_EQ(rounding_divide_by_power_of_two(kMin, 31), -1);
  EXPECT_EQ(rounding_divide_by_power_of_two(kMax, 31), 1);
}

TEST(FixedPoint, MultipliersHoldTheirFactor) {
  for (const double real : {1e-9, 0.0003, 0.25, 0.5, 0.9999999999, 1.0, 1.5, 100.0, 1e8}) {
    const Multiplier m = make_multiplier(real);
    EXPECT_NEAR(std::ldexp(m.mantissa, m.shift - 31) / real, 1.0, 1e-9) << real;
  }
  EXPECT_EQ(make_multiplier(0).mantissa, 0);
  EXPECT_EQ(make_multiplier(1e-12).mantissa, 0);
  EXPECT_EQ(make_multiplier(1e30).mantissa, kMax);
  EXPECT_EQ(make_multiplier(std::nan("")).mantissa, 0);
}

TEST(FixedPoint, MultiplyIsWithinOneOfTheExactProduct) {
  std::mt19937 random(2);
  for (int i = 0; i < 100000; ++i) {
    const auto x = static_cast<std::int32_t>(random()) >> (random() % 24);
    const double real =
        std::ldexp(0.5 + static_cast<double>(random()) / 8589934592.0, -static_cast<int>(random() % 20));
    ASSERT_NEAR(multiply(x, make_multiplier(real)), x * real, 1.0 + 1e-9 * std::abs(x * real));
  }
}

TEST(FixedPoint, SaturationAndRounding) {
  EXPECT_EQ(saturate<std::int8_t>(200), 127);
  EXPECT_EQ(saturate<std::uint8_t>(-3), 0);
  EXPECT_EQ(round_to_int32(2.5), 3);
  EXPECT_EQ(round_to_int32(-2.5), -3);
  EXPECT_EQ(round_to_int32(1e20), kMax);
  EXPECT_EQ(round_to_int32(std::nan("")), 0);
}

}  // namespace
}  // namespace reef::numeric

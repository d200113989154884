// SPDX-License-Identifier: Apache-2.0
// The tables are what programs hold (tests/zoo_tables_test.cpp); here: they are the functions that they are taken for.
#include "numeric/chip_tables.h"

#include <gtest/gtest.h>

#include <functional>

namespace reef::numeric {
namespace {

// Largest distance from `exact` over [low, high].
double largest_error(const std::function<double(double)>& table, const std::function<double(double)>& exact, double low,
                     double high) {
  double largest = 0;
  constexpr int kSteps = 20000;
  for (int i = 0; i <= kSteps; ++i) {
    const double x = static_cast<float>(low + (high - low) * i / kSteps);
    largest = std::max(largest, std::fabs(table(x) - exact(x)));
  }
  return largest;
}

double at(const ChipFunction& function, double x) { return function.at(static_cast<float>(x)); }

TEST(ChipTables, LogisticIsTheSigmoid) {
  for (const float scale : {1.0f / 256, 1.0f / 255, 0.01f}) {
    const ChipFunction function = chip_logistic(scale);
    const auto table = [&](double x) { return at(function, x) * double{scale} * 256; };
    const auto exact = [](double x) { return 256 / (1 + std::exp(-x)); };
    EXPECT_LT(largest_error(table, exact, -10, 10), 0.0085);
    EXPECT_LT(largest_error(table, exact, -30, 30), 0.015) << "flat beyond the limits of the argument";
  }
}

TEST(ChipTables, TanhIsOdd) {
  const ChipFunction function = chip_tanh(1.0f / 128);
  const double error =
      largest_error([&](double x) { return at(function, x); }, [](double x) { return 128 * std::tanh(x); }, -10, 10);
  EXPECT_LT(error, 0.0006);
  for (const float x : {0.0f, 0.01f, 0.5f, 3.0f, 100.0f}) EXPECT_EQ(function.at(-x), -function.at(x));
}

TEST(ChipTables, ExpAndRoot) {
  const ChipFunction exp = chip_exp();
  EXPECT_LT(largest_error([&](double x) { return at(exp, x); }, [](double x) { return 65535 * std::exp(x); }, -13, 0),
            0.3);
  EXPECT_EQ(exp.at(0), kChipExpOne);
  EXPECT_EQ(exp.at(1), kChipExpOne) << "arguments above 0 are clamped";
  const ChipTable root = chip_root_table();
  const auto exact = [](double x) { return double{kChipRootOne} / std::sqrt(x); };
  EXPECT_LT(largest_error([&](double x) { return chip_reciprocal_root(root, static_cast<float>(x)); }, exact, 1, 4000),
            0.05);
  EXPECT_EQ(chip_reciprocal_root(root, 16), chip_reciprocal_root(root, 1) / 4) << "other octaves by powers of four";
}

}  // namespace
}  // namespace reef::numeric

// SPDX-License-Identifier: Apache-2.0
// Tables of eight polynomials against the functions they were made for, at all 256 codes.
#include "numeric/table_fit.h"
#include "base/at.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace reef::numeric {
namespace {

struct Case {
  float scale, output_scale;
  int zero_point, output_zero_point;
};
constexpr Case kCases[] = {{0.05f, 0.04f, 128, 30},   {0.01f, 0.01f, 128, 100}, {0.1f, 0.05f, 200, 10},
                           {0.3f, 0.2f, 60, 1},       {0.004f, 0.004f, 0, 0},   {0.02f, 0.013f, 255, 128},
                           {0.0725f, 0.031f, 114, 8}, {1.0f, 0.5f, 128, 128}};

template <typename Function>
TableFit fitted(const Case& c, const Function& function) {
  CodeValues values{};
  for (int code = 0; code < 256; ++code) {
    values[at(code)] =
        function(static_cast<double>(c.scale) * (code - c.zero_point)) / static_cast<double>(c.output_scale);
  }
  return fit_table(values, c.scale, c.zero_point, c.output_zero_point);
}

// The chip's result is the rounded value of the function, or next to it where that lies halfway.
template <typename Function>
void expect_follows(const Function& function, double most) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.scale);
    const TableFit fit = fitted(c, function);
    EXPECT_LE(fit.error, most);
    for (int code = 0; code < 256; ++code) {
      const float argument = static_cast<float>(code - c.zero_point) * c.scale;
      const double real = function(static_cast<double>(argument)) / static_cast<double>(c.output_scale);
      const double lowest = -c.output_zero_point, highest = 255 - c.output_zero_point;
      const double wanted = std::min(std::max(real, lowest), highest) + c.output_zero_point;
      const int chip = chip_round(fit.function.at(argument), c.output_zero_point, 255);
      EXPECT_LE(std::fabs(chip - wanted), 0.5 + fit.error + 1e-4) << "code " << code;
    }
  }
}

TEST(TableFit, SmoothFunctionsOfNetworks) {
  expect_follows([](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }, 0.05);
  expect_follows([](double x) { return x / (1 + std::exp(-x)); }, 0.05);
  expect_follows([](double x) { return x < 0 ? std::expm1(x) : x; }, 0.05);
  expect_follows([](double x) { return std::log1p(std::exp(x)); }, 0.05);
  expect_follows([](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, 0.05);
}

TEST(TableFit, FunctionsWithCorners) {
  expect_follows([](double x) { return x * std::fmin(6, std::fmax(0, x + 3)) / 6; }, 0.05);
  expect_follows([](double x) { return std::fabs(x); }, 0.05);
  expect_follows([](double x) { return x > 0 ? x : 0.1 * x; }, 0.05);
}

TEST(TableFit, FunctionsThatLeaveTheRange) {
  expect_follows([](double x) { return std::exp(x); }, 0.25);
  expect_follows([](double x) { return x <= 0 ? -std::numeric_limits<double>::infinity() : std::log(x); }, 0.25);
}

// Values that no eight polynomials follow are said to be off by as much as they are.
TEST(TableFit, NoiseIsNotFollowed) {
  CodeValues values{};
  for (std::size_t code = 0; code < values.size(); ++code) values[code] = code % 2 == 0 ? 0 : 200;
  EXPECT_GT(fit_table(values, 0.05f, 128, 0).error, 50);
}

}  // namespace
}  // namespace reef::numeric

// SPDX-License-Identifier: Apache-2.0
// Vector functions against the C library's in double, over floats of all sizes; equal bits on all targets and at all
// places.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/elementwise/float_functions.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

using Map = void (*)(const float*, std::int64_t, float*);

// Every 99,991st float, and what is special.
std::vector<float> samples() {
  std::vector<float> values = {0.0f, -0.0f, 1.0f, -1.0f, 88.7f, -87.3f, 0.625f, 16.7f, -9.0f};
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 99'991) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(value)) values.push_back(value);
  }
  return values;
}

// Units in the last place, or of the smallest number there is; infinite where only one is.
double distance(float got, double want) {
  const auto rounded = static_cast<float>(want);
  if (got == rounded) return 0;
  if (std::isinf(got) || std::isinf(rounded) || std::isnan(got)) return 1e30;
  int exponent = 0;
  std::frexp(std::max(std::abs(want), static_cast<double>(std::numeric_limits<float>::min())), &exponent);
  return std::abs(static_cast<double>(got) - want) / std::ldexp(1.0, exponent - 24);
}

void expect_close(Map map, double (*reference)(double), double most) {
  const std::vector<float> in = samples();
  std::vector<float> first;
  for_each_supported_target([&](SimdTarget target) {
    std::vector<float> out(in.size());
    map(in.data(), static_cast<std::int64_t>(in.size()), out.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      ASSERT_LE(distance(out[i], reference(static_cast<double>(in[i]))), most)
          << target_name(target) << ": of " << in[i] << " it is " << out[i];
    }
    if (first.empty()) first = out;
    EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(float)), 0) << target_name(target);
    for (std::size_t i = 0; i < 50; ++i) {
      float single = 0;
      map(&in[i], 1, &single);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(single), std::bit_cast<std::uint32_t>(out[i]));
    }
    const float nan = std::numeric_limits<float>::quiet_NaN();
    float of_nan = 0;
    map(&nan, 1, &of_nan);
    EXPECT_TRUE(std::isnan(of_nan));
  });
}

TEST(FloatFunctions, Exponentials) {
  expect_close(
      exponentials, [](double x) { return std::exp(x); }, 2);
}
TEST(FloatFunctions, Logistics) {
  expect_close(
      logistics,
      [](double x) { return x > 16.619047164916992188 ? 1.0
                            : x < -9                  ? std::exp(x)
                                                      : 1 / (1 + std::exp(-x)); }, 4);
}
TEST(FloatFunctions, HyperbolicTangents) {
  expect_close(
      hyperbolic_tangents, [](double x) { return std::tanh(x); }, 4);
}

}  // namespace
}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
// Vector functions against the C library's in double, over floats of all sizes; equal bits on all targets and at all
// places.
#include <algorithm>
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

void expect_close(Map map, double (*reference)(double), double most,
                  float lowest = -std::numeric_limits<float>::infinity()) {
  std::vector<float> in = samples();
  std::erase_if(in, [lowest](float x) { return x < lowest; });
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
TEST(FloatFunctions, Elus) {
  expect_close(
      elus, [](double x) { return x < 0 ? std::expm1(x) : x; }, 4);
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

TEST(FloatFunctions, Gelus) {
  // At infinity 0 times infinity: NaN, as by the C library in floats.
  expect_close(
      gelus, [](double x) { return x < -1e9 ? 0.0 : 0.5 * x * std::erfc(x * -0.70710678118654752440); }, 16,
      /*lowest=*/-std::numeric_limits<float>::max());
}

TEST(FloatFunctions, GelusByTanh) {
  const std::vector<float> in = samples();
  std::vector<float> first;
  for_each_supported_target([&](SimdTarget target) {
    std::vector<float> out(in.size());
    gelus_by_tanh(in.data(), static_cast<std::int64_t>(in.size()), out.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const double x = static_cast<double>(in[i]);
      if (std::abs(x) > 1e4) continue;
      const double want = 0.5 * x * (1 + std::tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
      ASSERT_NEAR(static_cast<double>(out[i]), want, 1e-6 * std::max(1.0, std::abs(x))) << "of " << in[i];
    }
    if (first.empty()) first = out;
    EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * sizeof(float)), 0) << target_name(target);
  });
}

TEST(FloatFunctions, SquareRootsAreTheCLibrarys) {
  std::vector<float> in = samples();
  in.push_back(std::numeric_limits<float>::quiet_NaN());
  for_each_supported_target([&](SimdTarget target) {
    std::vector<float> roots(in.size()), inverse(in.size());
    square_roots(in.data(), static_cast<std::int64_t>(in.size()), roots.data());
    inverse_square_roots(in.data(), static_cast<std::int64_t>(in.size()), inverse.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float root = std::sqrt(in[i]), divided = 1.0f / root;
      if (std::isnan(root)) {
        ASSERT_TRUE(std::isnan(roots[i]) && std::isnan(inverse[i])) << target_name(target) << ": of " << in[i];
        continue;
      }
      ASSERT_EQ(std::bit_cast<std::uint32_t>(roots[i]), std::bit_cast<std::uint32_t>(root)) << target_name(target);
      ASSERT_EQ(std::bit_cast<std::uint32_t>(inverse[i]), std::bit_cast<std::uint32_t>(divided)) << target_name(target);
    }
    for (std::int64_t count = 1; count < 40; ++count) {  // wherever it lies
      std::vector<float> some(static_cast<std::size_t>(count));
      inverse_square_roots(in.data() + 7, count, some.data());
      EXPECT_EQ(std::memcmp(some.data(), inverse.data() + 7, some.size() * sizeof(float)), 0) << target_name(target);
    }
  });
}

TEST(FloatFunctions, Largest) {
  for_each_supported_target([](SimdTarget target) {
    for (std::int64_t count = 0; count < 70; ++count) {
      std::vector<float> in(static_cast<std::size_t>(count));
      float want = std::numeric_limits<float>::lowest();
      for (std::size_t i = 0; i < in.size(); ++i) {
        in[i] = std::sin(static_cast<float>(i * 37 + 5 * in.size())) - 3.0f;
        if (i % 5 == 3) in[i] = std::numeric_limits<float>::quiet_NaN();
        want = std::max(want, in[i]);
      }
      EXPECT_EQ(largest(in.data(), count), want) << target_name(target) << ", " << count;
    }
  });
}

TEST(FloatFunctions, ExponentialsOfTheCLibrary) {
  std::vector<float> in = {0.0f, -0.0f, -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::quiet_NaN()};
  for (std::uint64_t bits = 0x80000000u; bits <= 0xC2D80000u; bits += 1009) {  // to -108
    in.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  std::vector<float> first;
  for_each_supported_target([&](SimdTarget target) {
    std::vector<float> out(in.size());
    c_exponentials(in.data(), static_cast<std::int64_t>(in.size()), out.data());
    std::size_t others = 0;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float want = std::exp(in[i]);
      if (std::isnan(in[i])) {
        EXPECT_TRUE(std::isnan(out[i]));
        continue;
      }
      others += std::bit_cast<std::uint32_t>(out[i]) != std::bit_cast<std::uint32_t>(want);
      ASSERT_LE(distance(out[i], static_cast<double>(want)), 1) << target_name(target) << ": of " << in[i];
    }
#if defined(__GLIBC__)
    EXPECT_LE(others, in.size() / 200'000) << target_name(target);
#endif
    if (first.empty()) first = out;
    EXPECT_EQ(std::memcmp(first.data() + 4, out.data() + 4, (out.size() - 4) * sizeof(float)), 0);
    for (std::size_t count = 1; count < 40; ++count) {  // wherever it lies
      std::vector<float> some(count);
      c_exponentials(in.data() + 100, static_cast<std::int64_t>(count), some.data());
      EXPECT_EQ(std::memcmp(some.data(), first.data() + 100, count * sizeof(float)), 0);
    }
  });
}

}  // namespace
}  // namespace reef::kernels

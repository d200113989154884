// SPDX-License-Identifier: Apache-2.0
// tanh and the logistic function in vectors against one number at a time: equal bits for floats of every size, NaN and
// infinities, on every target. (That the latter are TFLite's is shown by tests/vectors.)
#include "kernels/recurrent/float_curves.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/recurrent/float_vectors.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

// Every 9973rd float, and those around the limits.
std::vector<float> floats_of_all_sizes() {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (const float limit :
       {0.0f, 0.0004f, 7.90531110763549805f, 7.90738964080810547f, 16.6355324f, 18.0f, 104.0f, 88.0f}) {
    for (const float x : {limit, std::nextafter(limit, 1e9f), std::nextafter(limit, -1e9f)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  return values;
}

// The bits of a float, the same for every NaN: which bits arithmetic gives a NaN is up to the compiler.
std::uint32_t bits_of(float x) {
  return std::bit_cast<std::uint32_t>(std::isnan(x) ? std::numeric_limits<float>::quiet_NaN() : x);
}

template <typename Curves>
void compare() {
  const std::vector<float> values = floats_of_all_sizes();
  std::vector<float> tanhs = values, logistics = values;
  Curves::tanhs(tanhs.data(), static_cast<std::int64_t>(tanhs.size()));
  Curves::logistics(logistics.data(), static_cast<std::int64_t>(logistics.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(bits_of(tanhs[i]), bits_of(Curves::tanh(values[i]))) << "tanh of " << values[i];
    const float e = Curves::vector_exp(std::min(values[i], Curves::kLargest));
    const float want = std::isnan(values[i]) ? values[i] : e / (1.0f + e);
    ASSERT_EQ(bits_of(logistics[i]), bits_of(want)) << "logistic function of " << values[i];
  }
}

TEST(FloatCurves, VectorsEqualSingleNumbers) {
  for_each_supported_target([](SimdTarget target) {
    SCOPED_TRACE(target_name(target));
    compare<CurvesOf29>();
    compare<CurvesOfCurrent>();
  });
}

TEST(FloatVectors, RowsTogetherEqualSingleRows) {
  for (const SumOrder order : {SumOrder::kTailLast, SumOrder::kStartLast}) {
    for (std::int64_t length = 1; length < 40; ++length) {
      constexpr std::int64_t kRows = 27;
      std::vector<float> matrix(static_cast<std::size_t>(kRows * length)), vector(static_cast<std::size_t>(length));
      for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(static_cast<float>(i) * 1.7f);
      for (std::size_t i = 0; i < vector.size(); ++i) vector[i] = std::cos(static_cast<float>(i) * 0.3f);
      const VectorBatch batch(order, vector.data(), 1, length, length);
      std::vector<float> sums(kRows);
      for (std::size_t r = 0; r < sums.size(); ++r) sums[r] = static_cast<float>(r) * 0.1f;
      batch.add_products({matrix.data(), nullptr, 1}, 0, kRows, 0, sums.data());
      for (std::int64_t r = 0; r < kRows; ++r) {
        const float start = static_cast<float>(r) * 0.1f;
        const float want = add_dot_product(order, start, matrix.data() + r * length, vector.data(), length);
        EXPECT_EQ(bits_of(sums[static_cast<std::size_t>(r)]), bits_of(want)) << "row " << r << " of " << length;
      }
    }
  }
}

}  // namespace
}  // namespace reef::kernels

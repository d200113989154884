// SPDX-License-Identifier: Apache-2.0
// Floats quantized in vectors against the definition, one number at a time: halves, the ends of the range, numbers
// beyond 32 bits, infinities and NaN; on every target.
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/elementwise/quantize.h"
#include "kernels/simd/each_target.h"
#include "numeric/fixed_point.h"
#include "numeric/lookup_table.h"

namespace reef::kernels {
namespace {

std::vector<float> samples(float scale) {
  std::mt19937 random(14);
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1e30f,
                               -1e30f,
                               std::numeric_limits<float>::quiet_NaN(),
                               std::numeric_limits<float>::infinity(),
                               -std::numeric_limits<float>::infinity()};
  for (int i = -600; i < 600; ++i) values.push_back(static_cast<float>(i) * 0.5f * scale);
  // Around halves, some floats to either side: there products with the inverse of the scale are not sure.
  for (int i = -300; i < 300; ++i) {
    const float half = (static_cast<float>(i) + 0.5f) * scale;
    for (std::int32_t off = -4; off <= 4; ++off)
      values.push_back(std::bit_cast<float>(std::bit_cast<std::int32_t>(half) + off));
  }
  for (int i = 0; i < 20000; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

template <typename T>
void compare(float scale, std::int32_t zero_point) {
  const std::vector<float> in = samples(scale);
  for_each_supported_target([&](SimdTarget target) {
    std::vector<T> out(in.size());
    quantize_to(in.data(), static_cast<std::int64_t>(in.size()), scale, zero_point, out.data());
    for (std::size_t i = 0; i < in.size(); ++i) {
      const std::int32_t whole = numeric::truncate_to_int32(std::round(in[i] / scale));
      ASSERT_EQ(out[i], numeric::saturate<T>(numeric::wrapping_add(whole, zero_point)))
          << target_name(target) << ": of " << in[i] << " at scale " << scale;
    }
  });
}

TEST(QuantizeTo, EqualsTheDefinition) {
  for (const float scale : {1.0f, 0.5f, 0.1f, 0.0078125f, 3.7e-5f, 0.0235294122f, 1.7e-3f, 1e-40f, 2e38f}) {
    compare<std::int8_t>(scale, -128);
    compare<std::int8_t>(scale, 127);
    compare<std::uint8_t>(scale, 255);
    compare<std::uint8_t>(scale, 3);
    compare<std::int16_t>(scale, 0);
  }
}

}  // namespace
}  // namespace reef::kernels

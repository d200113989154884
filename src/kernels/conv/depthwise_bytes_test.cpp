// SPDX-License-Identifier: Apache-2.0
// Fast 8-bit depthwise convolutions against the reference ones on every target, over random shapes and extremes: equal
// to the bit. (That the reference equals TFLite's is shown by tests/vectors.)
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conv/depthwise.h"
#include "kernels/conv/depthwise_bytes.h"
#include "kernels/conv/random_conv.h"
#include "kernels/matmul/random_bytes.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

constexpr int kTrials = 300;

template <typename T>
void compare(std::mt19937& random, const std::string& what) {
  ConvShape s = random_conv(random);
  s.groups = 1;
  s.output_channels = s.input_channels;
  const std::int64_t kind = pick(random, 0, 3);
  if (kind == 0) {
    // Larger windows of many channels.
    s.x.window = pick(random, 2, 3) * 2 + 1;
    s.y.window = pick(random, 0, 1) == 0 ? s.x.window : pick(random, 1, 9);
    s.y.dilation = s.x.dilation = 1;
    s.y.stride = s.x.stride = pick(random, 1, 2);
    s.input_channels = s.output_channels = pick(random, 32, 100);
  } else if (kind < 3) {
    // The most common windows of networks.
    s.y.window = s.x.window = 3;
    s.y.dilation = s.x.dilation = pick(random, 0, 2) == 0 ? pick(random, 2, 4) : 1;
    s.y.stride = s.x.stride = pick(random, 1, 2);
  }
  const std::vector<T> input = random_bytes<T>(random, s.batches * s.input_batch_size());
  const std::vector<T> weights = random_bytes<T>(random, s.taps() * s.output_channels);
  const std::int32_t input_zero = random_zero_point<T>(random);
  const std::int32_t middle = std::is_signed_v<T> ? 0 : 128;
  const std::int32_t weights_zero = pick(random, 0, 1) == 0 ? middle : random_zero_point<T>(random);
  const Requantizer q = random_requantizer<T>(random, s.output_channels);
  if (!suits_byte_scaling(q)) return;
  std::vector<std::int64_t> bias(static_cast<std::size_t>(s.output_channels));
  for (auto& b : bias) b = pick(random, -100000, 100000);
  const std::int64_t* bias_data = pick(random, 0, 3) == 0 ? nullptr : bias.data();
  std::vector<std::int16_t> wide(weights.size());
  widen(weights.data(), static_cast<std::int64_t>(weights.size()), weights_zero, wide.data());

  std::vector<T> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels), T{77}), got = want;
  for (std::int64_t row = 0; row < s.output_rows(); ++row) {
    depthwise_convolve(
        s, input.data(), {&input_zero, 1}, wide.data(), kRunOf8BitProducts, {row, 0, s.x.output, 0, s.output_channels},
        [&](std::int64_t pixel, std::int64_t channel, const std::int64_t* sums, std::int64_t count) {
          requantize(q, sums, bias_data, channel, count, want.data() + pixel * s.output_channels + channel);
        });
  }
  const DepthwiseWeights packed = pack_depthwise(s, wide.data());
  const ByteScaling scaling =
      depthwise_scaling<T>(s, packed, std::make_shared<const Requantizer>(q), bias_data, input_zero);
  const std::int64_t blocks = (s.output_channels + kDepthwiseBlock - 1) / kDepthwiseBlock;
  const std::int64_t cut = pick(random, 1, s.output_rows());
  for (std::int64_t row = 0; row < s.output_rows(); row += cut) {
    depthwise_bytes<T>(s, input.data(), input_zero, packed, scaling, row, std::min(row + cut, s.output_rows()), 0,
                       blocks, got.data());
  }
  ASSERT_EQ(want, got) << what << ": " << text_of(s);
}

template <typename T>
void compare_all() {
  for_each_supported_target([](SimdTarget target) {
    if (target == SimdTarget::kBaseline) return;
    std::mt19937 random(10);
    for (int trial = 0; trial < kTrials && !::testing::Test::HasFatalFailure(); ++trial) {
      compare<T>(random, std::string(target_name(target)) + ", trial " + std::to_string(trial));
    }
  });
}

TEST(DepthwiseBytes, Int8EqualsTheReference) { compare_all<std::int8_t>(); }
TEST(DepthwiseBytes, Uint8EqualsTheReference) { compare_all<std::uint8_t>(); }

}  // namespace
}  // namespace reef::kernels

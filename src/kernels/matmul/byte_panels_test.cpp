// SPDX-License-Identifier: Apache-2.0
// Fast 8-bit convolutions against the reference ones on every target, over random shapes and extremes: zero points at
// the ends, weights of -128 and 255, factors from tiny to above 1, sums that saturate. Equal to the bit. (That the
// reference equals TFLite's is shown by tests/vectors.)
#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conv/conv_int.h"
#include "kernels/conv/random_conv.h"
#include "kernels/matmul/byte_panels.h"
#include "kernels/matmul/random_bytes.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

constexpr int kTrials = 500;

// Weights that are mostly close to their zero point, as those of a network with one scale for all channels.
template <typename T>
std::vector<T> small_weights(std::mt19937& random, std::int64_t count, std::int32_t zero_point) {
  const std::int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  const std::int64_t spread = pick(random, 0, 40), large_ones = pick(random, 10, 400);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (T& value : values) {
    const bool is_large = pick(random, 0, large_ones) == 0;
    const std::int64_t weight = zero_point + (is_large ? pick(random, -255, 255) : pick(random, -spread, spread));
    value = static_cast<T>(std::clamp(weight, low, high));
  }
  return values;
}

template <typename T>
void compare(std::mt19937& random, const ConvShape& s, const std::string& what) {
  const std::vector<T> input = random_bytes<T>(random, s.batches * s.input_batch_size());
  const std::int32_t input_zero = random_zero_point<T>(random);
  const std::int32_t weights_zero = pick(random, 0, 1) == 0 ? 0 : random_zero_point<T>(random);
  const std::int64_t count = s.output_channels * s.depth();
  const std::vector<T> weights =
      pick(random, 0, 1) == 0 ? random_bytes<T>(random, count) : small_weights<T>(random, count, weights_zero);
  const Requantizer q = random_requantizer<T>(random, s.output_channels);
  if (!suits_byte_scaling(q)) return;
  std::vector<std::int64_t> bias(static_cast<std::size_t>(s.output_channels));
  for (auto& b : bias) b = pick(random, -100000, 100000);
  const std::int64_t* bias_data = pick(random, 0, 3) == 0 ? nullptr : bias.data();

  PackedRows rows(s.output_channels, s.depth());
  BytePanels panels(s);
  for (std::int64_t o = 0; o < s.output_channels; ++o)
    widen(weights.data() + o * s.depth(), s.depth(), weights_zero, rows.row(o));
  panels.pack([&](std::int64_t channel, std::int16_t* to) { std::copy_n(rows.row(channel), s.depth(), to); });
  std::vector<T> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels), T{77}), got = want;
  convolve(s, input.data(), {&input_zero, 1}, rows, kRunOf8BitProducts, 0, s.output_pixels(), 0, s.output_channels,
           [&](std::int64_t pixel, std::int64_t channel, const std::int64_t* sums, std::int64_t count) {
             requantize(q, sums, bias_data, channel, count, want.data() + pixel * s.output_channels + channel);
           });
  const ByteScaling scaling = byte_scaling<T>(panels, std::make_shared<const Requantizer>(q), bias_data, input_zero);
  const std::int64_t cut = pick(random, 1, s.output_pixels());
  for (std::int64_t group = 0; group < s.groups; ++group) {
    for (std::int64_t first = 0; first < s.output_pixels(); first += cut) {
      convolve_bytes<T>(s, input.data(), input_zero, panels, group, scaling, first,
                        std::min(first + cut, s.output_pixels()), 0, panels.panels(), got.data());
    }
  }
  ASSERT_EQ(want, got) << what << ": " << text_of(s);
}

// Sums alone, as layers of float activations want them.
void compare_sums(std::mt19937& random, const std::string& what) {
  ConvShape s = random_conv(random);
  s.input_channels = s.group_inputs();
  s.output_channels = s.group_outputs();
  s.groups = 1;
  const auto input = random_bytes<std::int8_t>(random, s.batches * s.input_batch_size());
  const std::int32_t input_zero = random_zero_point<std::int8_t>(random);
  const auto weights = random_bytes<std::int8_t>(random, s.output_channels * s.depth());
  PackedRows rows(s.output_channels, s.depth());
  for (std::int64_t o = 0; o < s.output_channels; ++o) widen(weights.data() + o * s.depth(), s.depth(), 0, rows.row(o));
  BytePanels panels(s);
  panels.pack([&](std::int64_t channel, std::int16_t* to) { std::copy_n(rows.row(channel), s.depth(), to); },
              /*has_sums=*/true);
  const std::int64_t first = pick(random, 0, s.output_pixels() - 1), count = s.output_pixels() - first;
  std::vector<std::int32_t> got(static_cast<std::size_t>(count * panels.padded_columns()));
  convolve_sums<std::int8_t>(s, input.data(), input_zero, panels, first, s.output_pixels(), got.data());
  convolve(s, input.data(), {&input_zero, 1}, rows, kRunOf8BitProducts, first, s.output_pixels(), 0, s.output_channels,
           [&](std::int64_t pixel, std::int64_t channel, const std::int64_t* sums, std::int64_t channels) {
             for (std::int64_t i = 0; i < channels; ++i) {
               const auto at = static_cast<std::size_t>((pixel - first) * panels.padded_columns() + channel + i);
               ASSERT_EQ(got[at], sums[i]) << what << ": " << text_of(s);
             }
           });
}

template <typename T>
void compare_all() {
  for_each_supported_target([](SimdTarget target) {
    if (!has_byte_panels()) return;
    std::mt19937 random(9);
    for (int trial = 0; trial < kTrials && !::testing::Test::HasFatalFailure(); ++trial) {
      const ConvShape s = random_conv(random);
      compare<T>(random, s, std::string(target_name(target)) + ", trial " + std::to_string(trial));
    }
    for (const ConvShape& s : grouped_convs()) {
      compare<T>(random, s, std::string(target_name(target)));
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(BytePanels, Int8EqualsTheReference) { compare_all<std::int8_t>(); }
TEST(BytePanels, SumsEqualTheReference) {
  for_each_supported_target([](SimdTarget target) {
    if (!has_byte_panels()) return;
    std::mt19937 random(10);
    for (int trial = 0; trial < kTrials && !::testing::Test::HasFatalFailure(); ++trial)
      compare_sums(random, std::string(target_name(target)) + ", trial " + std::to_string(trial));
  });
}
TEST(BytePanels, Uint8EqualsTheReference) { compare_all<std::uint8_t>(); }

}  // namespace
}  // namespace reef::kernels

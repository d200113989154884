// SPDX-License-Identifier: Apache-2.0
// Fast float convolutions against the reference ones over random shapes, on every target: equal to the bit. (That the
// reference equals TFLite's is shown by tests/vectors.) Fused sums against the C library's fma, likewise.
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conv/conv_float.h"
#include "kernels/conv/depthwise_float.h"
#include "kernels/conv/random_conv.h"
#include "kernels/matmul/float_panels.h"
#include "kernels/simd/each_target.h"

namespace reef::kernels {
namespace {

constexpr int kTrials = 200;

std::vector<float> random_floats(std::mt19937& random, std::int64_t count) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  if (!values.empty()) values[0] = -0.0f;
  return values;
}

// One of the vector lengths that the target has code for, in turn.
std::int64_t lanes_in_turn(SimdTarget target, std::int64_t turn) {
  const std::vector<std::int64_t> all = float_vector_lanes(target);
  return all[static_cast<std::size_t>(turn) % all.size()];
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Operands {
  std::vector<float> input, weights, bias;
  FloatOutput finish;

  Operands(std::mt19937& random, const ConvShape& s, std::int64_t weight_count)
      : input(random_floats(random, s.batches * s.input_batch_size())),
        weights(random_floats(random, weight_count)),
        bias(random_floats(random, s.output_channels)) {
    const bool has_bias = pick(random, 0, 1) == 1, is_clamped = pick(random, 0, 1) == 1;
    finish = {has_bias ? bias.data() : nullptr, is_clamped ? 0.0f : -1e30f, is_clamped ? 6.0f : 1e30f};
  }
};

TEST(FloatPanels, EqualTheReferenceOnRandomConvolutions) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(7);
    const std::vector<ConvShape> grouped = grouped_convs();
    const int chosen = static_cast<int>(grouped.size());
    for (int trial = 0; trial < chosen + kTrials; ++trial) {
      const ConvShape s = trial < chosen ? grouped[static_cast<std::size_t>(trial)] : random_conv(random);
      const Operands at(random, s, s.output_channels * s.depth());
      PackedColumns columns(s.groups, s.group_outputs(), s.depth());
      FloatPanels panels(s.groups, s.group_outputs(), s.depth(), lanes_in_turn(target, trial));
      for (std::int64_t o = 0; o < s.output_channels; ++o) {
        const float* row = at.weights.data() + o * s.depth();
        panels.set_column(o / s.group_outputs(), o % s.group_outputs(), row, 1);
        for (std::int64_t k = 0; k < s.depth(); ++k) {
          columns.at(o / s.group_outputs(), o % s.group_outputs(), k) = row[k];
        }
      }
      std::vector<float> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels), 7.0f), got = want;
      for (std::int64_t row = 0; row < s.output_rows(); ++row) {
        convolve_float(s, at.input.data(), columns, at.finish, {row, 0, s.x.output, 0, s.output_channels}, want.data());
      }
      const std::int64_t cut = pick(random, 1, s.output_pixels());
      for (std::int64_t group = 0; group < s.groups; ++group) {
        for (std::int64_t first = 0; first < s.output_pixels(); first += cut) {
          convolve_panels(s, at.input.data(), panels, group, at.finish, first, std::min(first + cut, s.output_pixels()),
                          0, panels.panels(), got.data());
        }
      }
      ASSERT_TRUE(same_bits(want, got)) << target_name(target) << ", trial " << trial << ": " << text_of(s);
    }
  });
}

// A single row goes by several panels at a time.
TEST(FloatPanels, EqualTheReferenceOnSingleRows) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(11);
    std::int64_t turn = 0;
    for (const std::int64_t outputs :
         {1, 1, 15, 15, 31, 31, 63, 63, 64, 64, 65, 65, 96, 96, 127, 127, 128, 128, 130, 130, 256, 256, 300, 300}) {
      ConvShape s;
      s.batches = 1;
      s.input_channels = pick(random, 1, 70);
      s.output_channels = outputs;
      s.x = s.y = {1, 1, 1, 1, 1, 0};
      const Operands at(random, s, outputs * s.depth());
      PackedColumns columns(1, outputs, s.depth());
      FloatPanels panels(1, outputs, s.depth(), lanes_in_turn(target, turn++));
      for (std::int64_t o = 0; o < outputs; ++o) {
        const float* row = at.weights.data() + o * s.depth();
        panels.set_column(0, o, row, 1);
        for (std::int64_t k = 0; k < s.depth(); ++k) columns.at(0, o, k) = row[k];
      }
      std::vector<float> want(static_cast<std::size_t>(outputs), 7.0f), got = want;
      convolve_float(s, at.input.data(), columns, at.finish, {0, 0, 1, 0, outputs}, want.data());
      convolve_panels(s, at.input.data(), panels, 0, at.finish, 0, 1, 0, panels.panels(), got.data());
      ASSERT_TRUE(same_bits(want, got)) << target_name(target) << ": " << text_of(s);
    }
  });
}

TEST(DepthwiseFloat, EqualsTheReferenceOnRandomConvolutions) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(8);
    for (int trial = 0; trial < kTrials; ++trial) {
      ConvShape s = random_conv(random);
      s.groups = 1;
      s.output_channels = s.input_channels * (pick(random, 0, 5) == 0 ? 2 : 1);
      const Operands at(random, s, s.taps() * s.output_channels);
      std::vector<float> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels), 7.0f), got = want;
      for (std::int64_t row = 0; row < s.output_rows(); ++row) {
        depthwise_convolve_float(s, at.input.data(), at.weights.data(), at.finish,
                                 {row, 0, s.x.output, 0, s.output_channels}, want.data());
      }
      const std::int64_t cut = pick(random, 1, s.output_rows());
      const std::int64_t outputs_each = s.output_channels / s.input_channels;
      const std::int64_t middle = pick(random, 0, s.input_channels) * outputs_each;
      for (std::int64_t row = 0; row < s.output_rows(); row += cut) {
        const std::int64_t end = std::min(row + cut, s.output_rows());
        depthwise_float_rows(s, at.input.data(), at.weights.data(), at.finish, row, end, 0, middle, got.data());
        depthwise_float_rows(s, at.input.data(), at.weights.data(), at.finish, row, end, middle, s.output_channels,
                             got.data());
      }
      ASSERT_TRUE(same_bits(want, got)) << target_name(target) << ", trial " << trial << ": " << text_of(s);
    }
  });
}

// Windows of 3x3 have a way of their own: all small widths, strides and paddings.
TEST(DepthwiseFloat, EqualsTheReferenceOnWindowsOf3x3) {
  for_each_supported_target([](SimdTarget target) {
    std::mt19937 random(9);
    for (std::int64_t width = 3; width < 24; ++width) {
      for (int kind = 0; kind < 8; ++kind) {
        const std::int64_t stride = 1 + (kind & 1), before = kind >> 1 & 1, after = kind >> 2;
        ConvShape s;
        s.batches = 1;
        s.input_channels = s.output_channels = pick(random, 8, 40);
        s.x = {width, (width + before + after - 3) / stride + 1, 3, stride, 1, before};
        s.y = s.x;
        const Operands at(random, s, s.taps() * s.output_channels);
        std::vector<float> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels), 7.0f), got = want;
        for (std::int64_t row = 0; row < s.output_rows(); ++row) {
          const OutputBlock block{row, 0, s.x.output, 0, s.output_channels};
          depthwise_convolve_float(s, at.input.data(), at.weights.data(), at.finish, block, want.data());
        }
        depthwise_float_rows(s, at.input.data(), at.weights.data(), at.finish, 0, s.output_rows(), 0, s.output_channels,
                             got.data());
        ASSERT_TRUE(same_bits(want, got)) << target_name(target) << ": " << text_of(s);
      }
    }
  });
}

// Sums of one output with one rounding for each product that is added; `weight(tap, c)` for c of `channels` channels
// from `first` on.
template <typename Weight>
float fused_sum(const ConvShape& s, const std::vector<float>& input, std::int64_t pixel, std::int64_t first,
                std::int64_t channels, const Weight& weight) {
  const std::int64_t out_x = pixel % s.x.output, row = pixel / s.x.output;
  const std::int64_t out_y = row % s.y.output, batch = row / s.y.output;
  float sum = 0;
  for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
    const std::int64_t y = s.y.origin(out_y) + tap / s.x.window * s.y.dilation;
    const std::int64_t x = s.x.origin(out_x) + tap % s.x.window * s.x.dilation;
    if (y < 0 || y >= s.y.input || x < 0 || x >= s.x.input) continue;
    const std::int64_t at = batch * s.input_batch_size() + (y * s.x.input + x) * s.input_channels + first;
    for (std::int64_t c = 0; c < channels; ++c) {
      sum = std::fma(input[static_cast<std::size_t>(at + c)], weight(tap, c), sum);
    }
  }
  return sum;
}

bool can_fuse([[maybe_unused]] SimdTarget target) {
#if defined(__aarch64__)
  return true;
#else
  return includes(target, SimdTarget::kAvx2);
#endif
}

TEST(FloatPanels, FusedSumsAreRoundedOnceForEachProduct) {
  for_each_supported_target([](SimdTarget target) {
    if (!can_fuse(target)) return;
    std::mt19937 random(17);
    int differ = 0;  // from those with two roundings
    for (int trial = 0; trial < kTrials; ++trial) {
      const ConvShape s = random_conv(random);
      Operands at(random, s, s.output_channels * s.depth());
      FloatPanels panels(s.groups, s.group_outputs(), s.depth(), lanes_in_turn(target, trial));
      for (std::int64_t o = 0; o < s.output_channels; ++o) {
        panels.set_column(o / s.group_outputs(), o % s.group_outputs(), at.weights.data() + o * s.depth(), 1);
      }
      const std::int64_t channels = s.input_channels / s.groups;
      std::vector<float> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels)), got = want,
                                                                                                twice = want;
      for (std::int64_t i = 0; i < s.output_pixels() * s.output_channels; ++i) {
        const std::int64_t o = i % s.output_channels;
        const float sum = fused_sum(s, at.input, i / s.output_channels, o / s.group_outputs() * channels, channels,
                                    [&](std::int64_t tap, std::int64_t c) {
                                      const std::int64_t k = o * s.depth() + tap * channels + c;
                                      return at.weights[static_cast<std::size_t>(k)];
                                    });
        want[static_cast<std::size_t>(i)] = at.finish(sum, o);
      }
      for (std::int64_t group = 0; group < s.groups; ++group) {
        at.finish.may_fuse = false;
        convolve_panels(s, at.input.data(), panels, group, at.finish, 0, s.output_pixels(), 0, panels.panels(),
                        twice.data());
        at.finish.may_fuse = true;
        convolve_panels(s, at.input.data(), panels, group, at.finish, 0, s.output_pixels(), 0, panels.panels(),
                        got.data());
      }
      ASSERT_TRUE(same_bits(want, got)) << target_name(target) << ", trial " << trial << ": " << text_of(s);
      differ += same_bits(twice, got) ? 0 : 1;
    }
    EXPECT_GT(differ, kTrials / 2) << target_name(target);
  });
}

TEST(DepthwiseFloat, FusedSumsAreRoundedOnceForEachProduct) {
  for_each_supported_target([](SimdTarget target) {
    if (!can_fuse(target)) return;
    std::mt19937 random(18);
    for (int trial = 0; trial < kTrials; ++trial) {
      ConvShape s = random_conv(random);
      s.groups = 1;
      s.output_channels = s.input_channels = pick(random, 8, 40);  // fewer go to the reference
      Operands at(random, s, s.taps() * s.output_channels);
      at.finish.may_fuse = true;
      std::vector<float> want(static_cast<std::size_t>(s.output_pixels() * s.output_channels)), got = want;
      for (std::int64_t i = 0; i < s.output_pixels() * s.output_channels; ++i) {
        const std::int64_t o = i % s.output_channels;
        const float sum = fused_sum(s, at.input, i / s.output_channels, o, 1, [&](std::int64_t tap, std::int64_t) {
          return at.weights[static_cast<std::size_t>(tap * s.output_channels + o)];
        });
        want[static_cast<std::size_t>(i)] = at.finish(sum, o);
      }
      depthwise_float_rows(s, at.input.data(), at.weights.data(), at.finish, 0, s.output_rows(), 0, s.output_channels,
                           got.data());
      ASSERT_TRUE(same_bits(want, got)) << target_name(target) << ", trial " << trial << ": " << text_of(s);
    }
  });
}

}  // namespace
}  // namespace reef::kernels

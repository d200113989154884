// SPDX-License-Identifier: Apache-2.0
// Fast float convolutions against the reference ones over random shapes, on every target: equal to the bit. (That the
// reference equals TFLite's is shown by tests/vectors.)
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

constexpr int kTrials = 150;

std::vector<float> random_floats(std::mt19937& random, std::int64_t count) {
  std::normal_distribution<float> normal(0.0f, 1.0f);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = normal(random);
  if (!values.empty()) values[0] = -0.0f;
  return values;
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
    for (int trial = 0; trial < kTrials; ++trial) {
      const ConvShape s = random_conv(random);
      const Operands at(random, s, s.output_channels * s.depth());
      PackedColumns columns(s.groups, s.group_outputs(), s.depth());
      FloatPanels panels(s.groups, s.group_outputs(), s.depth());
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
    for (const std::int64_t outputs : {1, 15, 31, 63, 64, 65, 96, 127, 128, 130, 256, 300}) {
      ConvShape s;
      s.batches = 1;
      s.input_channels = pick(random, 1, 70);
      s.output_channels = outputs;
      s.x = s.y = {1, 1, 1, 1, 1, 0};
      const Operands at(random, s, outputs * s.depth());
      PackedColumns columns(1, outputs, s.depth());
      FloatPanels panels(1, outputs, s.depth());
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

}  // namespace
}  // namespace reef::kernels

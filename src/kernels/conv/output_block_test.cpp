// SPDX-License-Identifier: Apache-2.0
// Convolutions computed in blocks must equal those computed row by row, to the bit: how an output is cut depends on its
// size alone and must not show.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/conv/conv_float.h"
#include "kernels/conv/depthwise.h"

namespace reef::kernels {
namespace {

// Numbers whose sums depend on the order of additions.
std::vector<float> varied(std::int64_t count) {
  std::vector<float> values;
  std::uint32_t state = 12345;
  for (std::int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    values.push_back(static_cast<float>(static_cast<std::int32_t>(state)) * 1e-7f);
  }
  return values;
}

ConvShape shape_with(std::int64_t input_channels, std::int64_t output_channels, std::int64_t groups) {
  ConvShape s;
  s.batches = 2;
  s.input_channels = input_channels;
  s.output_channels = output_channels;
  s.groups = groups;
  s.y = {5, 5, 3, 1, 1, 1};
  s.x = {19, 19, 3, 1, 1, 1};
  return s;
}

using Part = std::function<void(const OutputBlock&)>;

void in_blocks(const ConvShape& s, std::int64_t columns, std::int64_t channels, const Part& part) {
  for (std::int64_t row = 0; row < s.output_rows(); ++row) {
    for (std::int64_t x = 0; x < s.x.output; x += columns) {
      for (std::int64_t c = 0; c < s.output_channels; c += channels) {
        part({row, x, std::min(x + columns, s.x.output), c, std::min(c + channels, s.output_channels)});
      }
    }
  }
}

// Whole rows against narrow blocks of channel_step channels, which meet the edges of the image.
void expect_equal_in_blocks(const ConvShape& s, std::int64_t channel_step,
                            const std::function<void(const OutputBlock&, float*)>& compute) {
  const auto size = static_cast<std::size_t>(s.output_pixels() * s.output_channels);
  std::vector<float> whole(size, -1), cut(size, -2);
  in_blocks(s, s.x.output, s.output_channels, [&](const OutputBlock& part) { compute(part, whole.data()); });
  for (const std::int64_t columns : {1, 4, 7}) {
    std::fill(cut.begin(), cut.end(), -2.0f);
    in_blocks(s, columns, channel_step, [&](const OutputBlock& part) { compute(part, cut.data()); });
    EXPECT_EQ(cut, whole) << columns << " columns";
  }
}

constexpr FloatOutput kPlain{nullptr, -1e30f, 1e30f};

void check_float(const ConvShape& s, std::int64_t channel_step) {
  const std::vector<float> input = varied(s.batches * s.input_batch_size());
  PackedColumns weights(s.groups, s.group_outputs(), s.depth());
  weights.values = varied(static_cast<std::int64_t>(weights.values.size()));
  expect_equal_in_blocks(s, channel_step, [&](const OutputBlock& part, float* output) {
    convolve_float(s, input.data(), weights, kPlain, part, output);
  });
}

TEST(OutputBlocks, FloatConvolution) { check_float(shape_with(6, 21, 1), kColumnBlock); }

TEST(OutputBlocks, FloatConvolutionInGroups) {
  check_float(shape_with(6, 9, 3), 3);
  check_float(shape_with(6, 32, 2), kColumnBlock);
}

TEST(OutputBlocks, TransposedFloatConvolution) {
  ConvShape s = shape_with(6, 21, 1);
  s.y = {5, 10, 3, 2, 1, 0};
  s.x = {9, 18, 3, 2, 1, 0};
  const std::vector<float> input = varied(s.batches * s.input_batch_size());
  PackedColumns weights(s.taps(), s.output_channels, s.input_channels);
  weights.values = varied(static_cast<std::int64_t>(weights.values.size()));
  expect_equal_in_blocks(s, kColumnBlock, [&](const OutputBlock& part, float* output) {
    transpose_convolve_float(s, input.data(), weights, kPlain, part, output);
  });
}

TEST(OutputBlocks, DepthwiseConvolution) {
  for (const std::int64_t multiplier : {1, 3}) {
    const ConvShape s = shape_with(5, 5 * multiplier, 1);
    const std::vector<float> input = varied(s.batches * s.input_batch_size());
    const std::vector<float> weights = varied(s.taps() * s.output_channels);
    expect_equal_in_blocks(s, multiplier, [&](const OutputBlock& part, float* output) {
      depthwise_convolve_float(s, input.data(), weights.data(), kPlain, part, output);
    });
  }
}

TEST(OutputBlocks, DepthwiseIntegerConvolution) {
  for (const std::int64_t multiplier : {1, 3}) {
    const ConvShape s = shape_with(5, 5 * multiplier, 1);
    std::vector<std::int8_t> input;
    for (const float x : varied(s.batches * s.input_batch_size())) {
      input.push_back(static_cast<std::int8_t>(static_cast<std::int32_t>(x) % 128));
    }
    std::vector<std::int16_t> weights;
    for (const float x : varied(s.taps() * s.output_channels)) {
      weights.push_back(static_cast<std::int16_t>(static_cast<std::int32_t>(x) % 100));
    }
    const std::int32_t zero_point = 3;
    expect_equal_in_blocks(s, multiplier, [&](const OutputBlock& part, float* output) {
      depthwise_convolve(s, input.data(), {&zero_point, 1}, weights.data(), kRunOf8BitProducts, part,
                         [&](std::int64_t pixel, std::int64_t first, const std::int64_t* sums, std::int64_t count) {
                           for (std::int64_t i = 0; i < count; ++i) {
                             output[pixel * s.output_channels + first + i] = static_cast<float>(sums[i]);
                           }
                         });
    });
  }
}

}  // namespace
}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
#include "runtime/layer_rules.h"

#include <gtest/gtest.h>

namespace reef::runtime {
namespace {

// 3x3 kernel, stride 2, SAME padding of one row above and none to the left: 4x5x2 to 2x3x3.
Rule convolution() {
  Rule rule;
  rule.kind = Rule::Kind::kLayer;
  rule.elements = 2 * 3 * 3;
  rule.shape = {darwinn::LayerKind::kConvolution, 3, 3, 2, 3};
  rule.geometry = {4, 5, 2, 2, 3, 3, 3, 3, 2, 2, 1, 1, 1, 0};
  return rule;
}

std::int32_t weight(int out, int ky, int kx, int in) { return ((out * 3 + ky) * 3 + kx) * 2 + in; }
std::int32_t place(int y, int x, int c) { return (y * 5 + x) * 2 + c; }

TEST(LayerRules, AnInputAndAWeightFixTheResult) {
  const Rule rule = convolution();
  // Row 2 with ky 1: 2 + 1 - 1 = 2, the second row of results; column 3 with kx 1: the second column.
  EXPECT_EQ(rule.result_of(place(2, 3, 1), weight(2, 1, 1, 1)), (1 * 3 + 1) * 3 + 2);
  EXPECT_EQ(rule.result_of(place(2, 3, 1), weight(2, 1, 1, 0)), Rule::kContradiction);  // another channel
  EXPECT_EQ(rule.result_of(place(2, 2, 1), weight(2, 1, 1, 1)), Rule::kOutside);        // between two strides
  EXPECT_EQ(rule.result_of(place(3, 4, 0), weight(0, 0, 0, 0)), Rule::kOutside);        // below the last row
}

TEST(LayerRules, PaddingIsWhereTheKernelLeavesThePicture) {
  Rule rule = convolution();
  std::vector<bool> constants(4 * 5 * 2);
  rule.constants = &constants;
  EXPECT_TRUE(rule.takes_constant(0, weight(0, 0, 0, 0)));   // above the first row
  EXPECT_FALSE(rule.takes_constant(0, weight(0, 1, 0, 0)));  // the first row
  constants[at(place(0, 0, 0))] = true;
  EXPECT_TRUE(rule.takes_constant(0, weight(0, 1, 0, 0)));
  EXPECT_EQ(rule.result_of_constants(weight(2, 0, 0, 0)), Rule::kOutside);  // one of several pixels
  rule.geometry.out_height = rule.geometry.out_width = 1;
  rule.elements = 3;
  EXPECT_EQ(rule.result_of_constants(weight(2, 0, 0, 0)), 2);
}

TEST(LayerRules, DepthwiseAndFullyConnected) {
  Rule depthwise = convolution();
  depthwise.shape = {darwinn::LayerKind::kDepthwise, 3, 3, 2, 2};
  depthwise.geometry.out_depth = 2;
  const std::int32_t tap = (1 * 3 + 1) * 2 + 1;  // ky 1, kx 1, channel 1
  EXPECT_EQ(depthwise.result_of(place(2, 3, 1), tap), (1 * 3 + 1) * 2 + 1);
  EXPECT_EQ(depthwise.result_of(place(2, 3, 0), tap), Rule::kContradiction);
  Rule dense;
  dense.elements = 2 * 3;
  dense.shape = {darwinn::LayerKind::kFullyConnected, 1, 1, 4, 3};
  EXPECT_EQ(dense.result_of(4 + 2, 1 * 4 + 2), 3 + 1);
  EXPECT_EQ(dense.result_of(4 + 2, 1 * 4 + 3), Rule::kContradiction);
}

TEST(LayerRules, OneWindowCoversWhatWasRead) {
  Rule rule = convolution();
  rule.geometry.out_depth = 2;
  const auto read = [&](int top, int bottom, int left, int right) {
    WindowSpan span;
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) rule.widen(span, place(y, x, 1));
    }
    return span;
  };
  EXPECT_EQ(rule.result_of(read(0, 1, 2, 4)), (0 * 3 + 1) * 2 + 1);
  EXPECT_EQ(rule.result_of(read(1, 3, 0, 2)), (1 * 3 + 0) * 2 + 1);
  EXPECT_EQ(rule.result_of(read(1, 2, 0, 2)), Rule::kOutside);  // a row is missing
  EXPECT_EQ(rule.result_of(WindowSpan{}), Rule::kOutside);
  WindowSpan two_channels = read(0, 1, 2, 4);
  rule.widen(two_channels, place(0, 2, 0));
  EXPECT_EQ(rule.result_of(two_channels), Rule::kContradiction);
  // Windows that all cover everything cannot be told apart.
  rule.geometry.kernel_height = rule.geometry.kernel_width = 9;
  rule.geometry.pad_top = rule.geometry.pad_left = 4;
  EXPECT_EQ(rule.result_of(read(0, 3, 0, 4)), Rule::kOutside);
}

}  // namespace
}  // namespace reef::runtime

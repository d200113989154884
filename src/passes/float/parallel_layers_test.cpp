// SPDX-License-Identifier: Apache-2.0
// Branches that are one layer become one, compute the same, and those that are not stay.
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

// A batch normalization of a map [n, c, h, w].
int normalized(Maker& make, int x) {
  const std::int32_t channels = make.shape(x)[1];
  return make.binary("ADD", make.binary("MUL", x, make.numbers({1, channels, 1, 1})), make.numbers({channels, 1, 1}));
}

TEST(ParallelLayers, TrainingBranchesOfRepVggAreOneConvolution) {
  Maker make;
  const int x = make.to_nchw(make.unary("RELU", make.input({1, 7, 6, 4})));
  int y = make.binary("ADD", normalized(make, make.conv(x, 4, 3)), normalized(make, make.conv(x, 4, 1)));
  y = make.binary("ADD", y, normalized(make, x));
  const ir::Model after = expect_same(make.finish({make.to_nhwc(make.unary("RELU", y))}), kRounding);
  EXPECT_EQ(operators_of(after), "RELU CONV_2D");
  EXPECT_EQ(after.subgraphs[0].operators[1].attributes.get_enum("fused_activation_function"), "RELU");
}

TEST(ParallelLayers, DepthwiseBranchesMergeAlsoWithStridesAndOddPadding) {
  for (const int stride : {1, 2}) {
    Maker make;
    const int picture = make.input({1, 8, 9, 6});
    // PyTorch pads one row on each side, which for stride 2 and an even size is not SAME.
    const int padding = make.constant(std::vector<std::int32_t>{0, 0, 1, 1, 1, 1, 0, 0}, {4, 2}, DataType::kInt32);
    const int padded = make.op("PAD", "PadOptions", {}, {picture, padding}, {1, 10, 11, 6});
    const std::int32_t rows = stride == 1 ? 8 : 4, columns = stride == 1 ? 9 : 5;
    const auto depthwise = [&](int from, int filter) {
      ir::Attributes options = Maker::window("VALID", stride);
      options.set("depth_multiplier", std::int64_t{1});
      return make.op("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", options,
                     {from, make.numbers({1, filter, filter, 6}), make.numbers({6})}, {1, rows, columns, 6});
    };
    int y = make.binary("SUB", depthwise(picture, 1), depthwise(padded, 3));
    if (stride == 1) y = make.binary("ADD", make.binary("MUL", picture, make.numbers({6})), y);
    const ir::Model after = expect_same(make.finish({y}), kRounding);
    EXPECT_EQ(operators_of(after), stride == 1 ? "DEPTHWISE_CONV_2D" : "PAD DEPTHWISE_CONV_2D");
  }
}

TEST(ParallelLayers, KernelsOfDifferentFormsMerge) {
  Maker make;
  const int x = make.input({1, 6, 6, 3});
  const auto conv = [&](int rows, int columns) {
    return make.op("CONV_2D", "Conv2DOptions", Maker::window("SAME", 1),
                   {x, make.numbers({5, rows, columns, 3}), make.numbers({5})}, {1, 6, 6, 5});
  };
  const int y = make.binary("ADD", make.binary("ADD", conv(1, 3), conv(3, 1)), conv(3, 3));
  EXPECT_EQ(operators_of(expect_same(make.finish({y}), kRounding)), "CONV_2D");
}

TEST(ParallelLayers, WhatIsReadElsewhereOrCostsMoreStays) {
  Maker make;
  const int x = make.to_nchw(make.input({1, 9, 9, 4}));
  const int conv = make.conv(x, 4, 3);
  const ir::Model skip = expect_same(make.finish({make.to_nhwc(make.binary("ADD", x, conv))}), kRounding);
  EXPECT_EQ(operators_of(skip), "CONV_2D ADD") << "a plain skip connection";

  Maker shared;
  const int z = shared.to_nchw(shared.input({1, 9, 9, 4}));
  const int read_twice = shared.conv(z, 4, 3);
  const int sum = shared.binary("ADD", shared.conv(z, 4, 1), read_twice);
  const ir::Model two = expect_same(
      shared.finish({shared.to_nhwc(shared.binary("MUL", sum, shared.unary("TANH", read_twice)))}), kRounding);
  EXPECT_EQ(count(two, "CONV_2D"), 2);

  Maker crossed;
  const int u = crossed.input({1, 9, 9, 4});
  const auto strip = [&](int rows, int columns) {
    return crossed.op("CONV_2D", "Conv2DOptions", Maker::window("SAME", 1),
                      {u, crossed.numbers({4, rows, columns, 4}), crossed.numbers({4})}, {1, 9, 9, 4});
  };
  const ir::Model long_strips =
      expect_same(crossed.finish({crossed.binary("ADD", strip(1, 7), strip(7, 1))}), kRounding);
  EXPECT_EQ(count(long_strips, "CONV_2D"), 2) << "49 taps instead of 14";
}

}  // namespace
}  // namespace reef::passes::testing

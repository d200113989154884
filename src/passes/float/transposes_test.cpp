// SPDX-License-Identifier: Apache-2.0
// Movement: where conversions go, what operators look like in the other layout, and that the same comes out, to the bit
// where no sum is turned around.
#include "passes/float/layout_rules.h"
#include "passes/float/min_cut.h"
#include "passes/float/reshape_axes.h"
#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

// ---- The parts ----

TEST(Layout, ComposesAndInverts) {
  const Shape shape = {2, 3, 1, 5};
  const Layout nhwc = {0, 2, 3, 1};
  EXPECT_EQ(laid_out(shape, nhwc), Shape({2, 1, 5, 3}));
  EXPECT_TRUE(is_identity(compose(nhwc, inverse(nhwc, 4)), shape));
  EXPECT_TRUE(moves_elements(nhwc, shape));
  EXPECT_FALSE(moves_elements({0, 2, 1, 3}, shape));      // only the axis of size 1 moves
  EXPECT_TRUE(is_same({0, 1, 3}, {0, 1, 3}, shape));      // left out
  EXPECT_TRUE(is_identity({0, 1, kNewAxis, 3}, shape));   // left out and put in again
  EXPECT_FALSE(is_identity({0, 1, 3, kNewAxis}, shape));  // elsewhere
  EXPECT_EQ(conversion_cost({0, 1, 2, 3}, shape), 0);
  EXPECT_LT(conversion_cost({0, 1, 3}, shape), conversion_cost(nhwc, shape));
}

TEST(ReshapeAxes, SaysWhereAxesGo) {
  const ReshapeAxes axes = reshape_axes({2, 12, 5}, {2, 3, 4, 5});
  EXPECT_EQ(axes.sizes, (std::vector<std::int64_t>{2, 3, 4, 5}));
  const auto order = fine_order(axes, axes.from, {0, 2, 1});
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(*order, (std::vector<int>{0, 3, 1, 2}));
  EXPECT_EQ(matching_layout(axes, axes.to, *order), (Layout{0, 3, 1, 2}));
  // The other way, only where the parts stay together.
  EXPECT_FALSE(matching_layout(axes, axes.from, *fine_order(axes, axes.to, {0, 2, 1, 3})).has_value());
  EXPECT_EQ(matching_layout(axes, axes.from, *fine_order(axes, axes.to, {3, 1, 2, 0})), (Layout{2, 1, 0}));
  // 4 x 6 as 3 x 8 has no common factors: the axes stay together.
  const ReshapeAxes glued = reshape_axes({2, 4, 6}, {2, 3, 8});
  EXPECT_EQ(matching_layout(glued, glued.to, *fine_order(glued, glued.from, {1, 2, 0})), (Layout{1, 2, 0}));
  EXPECT_FALSE(fine_order(glued, glued.from, {2, 0, 1}).has_value());
  EXPECT_FALSE(fine_order(glued, glued.from, {0, 2, 1}).has_value());
  // Axes of size 1 do not matter.
  const ReshapeAxes ones = reshape_axes({1, 6, 1}, {6});
  EXPECT_EQ(matching_layout(ones, ones.to, *fine_order(ones, ones.from, {2, 0, 1})), (Layout{0}));
}

TEST(MinCut, FindsTheCheapestDivision) {
  MinCut cut;
  const int a = cut.add_node(), b = cut.add_node(), c = cut.add_node();
  cut.add_edge(MinCut::kSource, a, 10);
  cut.add_edge(a, b, 4);
  cut.add_edge(a, c, 3);
  cut.add_edge(b, MinCut::kSink, 9);
  cut.add_edge(c, b, 9);
  cut.add_edge(c, MinCut::kSink, 9);
  EXPECT_EQ(cut.solve(), 7);
  EXPECT_TRUE(cut.is_source_side(a));
  EXPECT_FALSE(cut.is_source_side(b));
  EXPECT_FALSE(cut.is_source_side(c));
}

// ---- As text: what is rewritten, exactly ----

ir::Model parsed(std::string_view text) {
  const auto model = ir::parse(text);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : ir::Model();
}

TEST(SimplifyText, TransposesCancelThroughArithmetic) {
  const ir::Model before = parsed(R"(model {
  subgraph "main" inputs(%0) outputs(%7) {
    %0 "x" : float32[1, 2, 2, 3]
    %1 "to_nchw" : int32[4] buffer=1 = [0, 3, 1, 2]
    %2 "x_nchw" : float32[1, 3, 2, 2]
    %3 "scale" : float32[3, 1, 1] buffer=2 = [1, 2, 3]
    %4 "scaled" : float32[1, 3, 2, 2]
    %5 "padding" : int32[4, 2] buffer=3 = [0, 0, 0, 1, 2, 3, 4, 5]
    %6 "padded" : float32[1, 4, 7, 11]
    %7 "y" : float32[1, 7, 11, 4]
    %8 "to_nhwc" : int32[4] buffer=4 = [0, 2, 3, 1]
    %2 = TRANSPOSE(%0, %1) code=39 TransposeOptions{}
    %4 = MUL(%2, %3) code=18 MulOptions{fused_activation_function=NONE}
    %6 = PAD(%4, %5) code=34 PadOptions{}
    %7 = TRANSPOSE(%6, %8) code=39 TransposeOptions{}
  }
})");
  EXPECT_EQ(ir::print(expect_same(before, 0)), R"(model {
  subgraph "main" inputs(%0) outputs(%1) {
    %0 "x" : float32[1, 2, 2, 3]
    %1 "y" : float32[1, 7, 11, 4]
    %2 "reef/ints" : int32[4, 2] buffer=2 = [0, 0, 2, 3, 4, 5, 0, 1]
    %3 "scaled" : float32[1, 2, 2, 3]
    %4 "scale" : float32[1, 1, 3] buffer=1 = [1, 2, 3]
    %3 = MUL(%0, %4) code=18 MulOptions{fused_activation_function=NONE}
    %1 = PAD(%3, %2) code=34 PadOptions{}
  }
}
)");
}

TEST(SimplifyText, AFlattenedMapTurnsTheWeightsColumns) {
  const ir::Model before = parsed(R"(model {
  subgraph "main" inputs(%0) outputs(%6) {
    %0 "x" : float32[1, 1, 2, 3]
    %1 "to_nchw" : int32[4] buffer=1 = [0, 3, 1, 2]
    %2 "x_nchw" : float32[1, 3, 1, 2]
    %3 "flat_shape" : int32[2] buffer=2 = [1, 6]
    %4 "flat" : float32[1, 6]
    %5 "weights" : float32[2, 6] buffer=3 = [1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60]
    %6 "y" : float32[1, 2]
    %2 = TRANSPOSE(%0, %1) code=39 TransposeOptions{}
    %4 = RESHAPE(%2, %3) code=22 ReshapeOptions{new_shape=[1, 6]}
    %6 = FULLY_CONNECTED(%4, %5, %none) code=9 FullyConnectedOptions{fused_activation_function=NONE, weights_format=DEFAULT, keep_num_dims=false}
  }
})");
  EXPECT_EQ(ir::print(expect_same(before, 1e-6)), R"(model {
  subgraph "main" inputs(%0) outputs(%3) {
    %0 "x" : float32[1, 1, 2, 3]
    %1 "flat_shape" : int32[2] buffer=1 = [1, 6]
    %2 "flat" : float32[1, 6]
    %3 "y" : float32[1, 2]
    %4 "weights" : float32[2, 6] buffer=2 = [1, 3, 5, 2, 4, 6, 10, 30, 50, 20, 40, 60]
    %2 = RESHAPE(%0, %1) code=22 ReshapeOptions{new_shape=[1, 6]}
    %3 = FULLY_CONNECTED(%2, %4, %none) code=9 FullyConnectedOptions{fused_activation_function=NONE, weights_format=DEFAULT, keep_num_dims=false}
  }
}
)");
}

// ---- Movement through each kind of operator, to the bit, of float32 and int8 ----

class SimplifyMovement : public ::testing::TestWithParam<DataType> {};

// x [1, 6, 4, 5] channels first inside; the same without TRANSPOSE outside.
ir::Model wrapped(DataType type, const std::function<int(Maker&, int)>& body) {
  Maker make;
  const int x = make.to_nchw(make.input({1, 4, 5, 6}, type));
  return make.finish({make.to_nhwc(body(make, x))});
}

TEST_P(SimplifyMovement, LeavesNoTranspose) {
  const DataType type = GetParam();
  using Body = std::function<int(Maker&, int)>;
  const auto op = [&](std::string_view name, std::string_view options, ir::Attributes attributes) {
    return [=](Maker& make, std::vector<int> inputs, Shape shape) {
      return make.op(name, options, attributes, std::move(inputs), std::move(shape), type);
    };
  };
  const std::vector<std::pair<const char*, Body>> cases = {
      {"MIRROR_PAD",
       [&](Maker& make, int x) {
         const int amounts = make.constant(std::vector<std::int32_t>{0, 0, 1, 2, 1, 0, 0, 1}, {4, 2}, DataType::kInt32);
         return op("MIRROR_PAD", "MirrorPadOptions", Maker::attributes({{"mode", ir::EnumName{"REFLECT"}}}))(
             make, {x, amounts}, {1, 9, 5, 6});
       }},
      {"TILE",
       [&](Maker& make, int x) {
         return op("TILE", "TileOptions", {})(make, {x, make.ints({1, 2, 1, 3})}, {1, 12, 4, 15});
       }},
      {"SLICE",
       [&](Maker& make, int x) {
         return op("SLICE", "SliceOptions", {})(make, {x, make.ints({0, 2, 1, 0}), make.ints({1, 3, -1, 2})},
                                                {1, 3, 3, 2});
       }},
      {"GATHER",
       [&](Maker& make, int x) {
         return op("GATHER", "GatherOptions", Maker::attributes({{"axis", std::int64_t{1}}}))(
             make, {x, make.ints({5, 0, 3})}, {1, 3, 4, 5});
       }},
      {"REDUCE_MAX", [&](Maker& make, int x) { return make.reduce("REDUCE_MAX", x, {1}, true); }},
      {"SPLIT_V",
       [&](Maker& make, int x) {
         const int a = make.add_tensor({1, 2, 4, 5}, type), b = make.add_tensor({1, 4, 4, 5}, type);
         make.add("SPLIT_V", "SplitVOptions", Maker::attributes({{"num_splits", std::int64_t{2}}}),
                  {x, make.ints({2, 4}), make.scalar(1)}, {a, b});
         return make.concatenation({b, a}, 1);
       }},
      {"PACK and UNPACK",
       [&](Maker& make, int x) {
         const int a = make.add_tensor({1, 6, 5}, type), b = make.add_tensor({1, 6, 5}, type),
                   c = make.add_tensor({1, 6, 5}, type), d = make.add_tensor({1, 6, 5}, type);
         make.add("UNPACK", "UnpackOptions", Maker::attributes({{"num", std::int64_t{4}}, {"axis", std::int64_t{2}}}),
                  {x}, {a, b, c, d});
         return op("PACK", "PackOptions",
                   Maker::attributes({{"values_count", std::int64_t{3}}, {"axis", std::int64_t{2}}}))(make, {d, b, c},
                                                                                                      {1, 6, 3, 5});
       }},
      {"STRIDED_SLICE",
       [&](Maker& make, int x) {
         const ir::Attributes masks = Maker::attributes(
             {{"begin_mask", std::int64_t{2}}, {"end_mask", std::int64_t{8}}, {"shrink_axis_mask", std::int64_t{4}}});
         const int row = op("STRIDED_SLICE", "StridedSliceOptions", masks)(
             make, {x, make.ints({0, 9, 1, 0}), make.ints({1, 5, 2, 9}), make.ints({1, 2, 1, 1})}, {1, 3, 5});
         return make.reshape(row, {1, 3, 1, 5});
       }},
      {"RESHAPE",
       [&](Maker& make, int x) {
         return make.reshape(make.unary("RELU", make.reshape(x, {1, 2, 3, 20})), {1, 6, 4, 5});
       }},
  };
  for (const auto& [name, body] : cases) {
    SCOPED_TRACE(name);
    const ir::Model after = expect_same(wrapped(type, body), 0);
    EXPECT_EQ(count(after, "TRANSPOSE"), 0) << operators_of(after);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SimplifyMovement, ::testing::Values(DataType::kFloat32, DataType::kInt8));

TEST(SimplifyTransposes, OthersOfFloats) {
  using Body = std::function<int(Maker&, int)>;
  const std::vector<std::pair<const char*, Body>> cases = {
      {"MEAN",
       [](Maker& make, int x) {
         return make.binary("SUB", x, make.reduce("MEAN", x, {2, 3}, true));
       }},
      {"CUMSUM",
       [](Maker& make, int x) {
         return make.op("CUMSUM", "CumsumOptions", {}, {x, make.scalar(1)}, make.shape(x));
       }},
      {"REVERSE_V2",
       [](Maker& make, int x) {
         return make.op("REVERSE_V2", "ReverseV2Options", {}, {x, make.ints({-1})}, make.shape(x));
       }},
      {"SELECT_V2",
       [](Maker& make, int x) {
         const int is_large =
             make.op("GREATER", "GreaterOptions", {}, {x, make.numbers({6, 1, 1})}, make.shape(x), DataType::kBool);
         return make.op("SELECT_V2", "SelectV2Options", {}, {is_large, x, make.number(0.5f)}, make.shape(x));
       }},
      {"ARG_MAX",
       [](Maker& make, int x) {
         const int best =
             make.op("ARG_MAX", "ArgMaxOptions", Maker::attributes({{"output_type", ir::EnumName{"INT32"}}}),
                     {x, make.scalar(1)}, {1, 4, 5}, DataType::kInt32);
         const int real = make.op("CAST", "CastOptions", {}, {best}, {1, 4, 5});
         return make.binary("MUL", x, make.reshape(real, {1, 1, 4, 5}));
       }},
      {"BROADCAST_TO",
       [](Maker& make, int x) {
         const int peak = make.reduce("REDUCE_MAX", x, {1}, true);
         return make.op("BROADCAST_TO", "BroadcastToOptions", {}, {peak, make.ints({1, 3, 4, 5})}, {1, 3, 4, 5});
       }},
  };
  for (const auto& [name, body] : cases) {
    SCOPED_TRACE(name);
    const ir::Model after = expect_same(wrapped(DataType::kFloat32, body), 1e-6);
    EXPECT_EQ(count(after, "TRANSPOSE"), 0) << operators_of(after);
  }
}

TEST(SimplifyTransposes, SoftmaxOverChannelsAndTokens) {
  Maker make;  // a map becomes tokens: [n, c, h, w] -> [n, h w, c]
  const int map = make.conv(make.to_nchw(make.input({1, 8, 8, 3})), 6, 2, 2);
  const int tokens = make.transpose(make.reshape(map, {1, 6, 16}), {0, 2, 1});
  const int y = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {tokens}, {1, 16, 6});
  EXPECT_EQ(operators_of(expect_same(make.finish({make.dense(y, 4)}), 1e-5)),
            "CONV_2D RESHAPE SOFTMAX FULLY_CONNECTED");
}

TEST(SimplifyTransposes, ChannelShuffleHasOne) {
  Maker make;
  const int x = make.conv(make.to_nchw(make.input({1, 4, 4, 3})), 6, 1);
  const int shuffled = make.reshape(make.transpose(make.reshape(x, {1, 2, 3, 4, 4}), {0, 2, 1, 3, 4}), {1, 6, 4, 4});
  const ir::Model after =
      expect_same(make.finish({make.to_nhwc(make.depthwise(make.unary("RELU", shuffled), 3))}), 1e-5);
  EXPECT_EQ(count(after, "TRANSPOSE"), 1) << operators_of(after);
  EXPECT_EQ(operators_of(after), "CONV_2D RESHAPE TRANSPOSE RESHAPE DEPTHWISE_CONV_2D");
}

TEST(SimplifyTransposes, PixelShufflesBecomeOperators) {
  Maker up;
  const int x = up.conv(up.to_nchw(up.input({1, 4, 4, 3})), 12, 1);
  const int large = up.reshape(up.transpose(up.reshape(x, {1, 3, 2, 2, 4, 4}), {0, 1, 4, 2, 5, 3}), {1, 3, 8, 8});
  EXPECT_EQ(operators_of(expect_same(up.finish({up.to_nhwc(large)}), 1e-5)), "CONV_2D DEPTH_TO_SPACE");
  Maker down;
  const int y = down.to_nchw(down.input({2, 8, 6, 3}));
  const int deep = down.reshape(down.transpose(down.reshape(y, {2, 3, 4, 2, 3, 2}), {0, 1, 3, 5, 2, 4}), {2, 12, 4, 3});
  EXPECT_EQ(operators_of(expect_same(down.finish({down.to_nhwc(down.conv(deep, 4, 1))}), 1e-5)),
            "SPACE_TO_DEPTH CONV_2D");
  Maker plain;  // channels last, in TFLite's own order
  const int z = plain.input({1, 3, 5, 8});
  const int big =
      plain.reshape(plain.transpose(plain.reshape(z, {1, 3, 5, 2, 2, 2}), {0, 1, 3, 2, 4, 5}), {1, 6, 10, 2});
  EXPECT_EQ(operators_of(expect_same(plain.finish({big}), 0)), "DEPTH_TO_SPACE");
}

// Weights stored in 8 bits, as quantized models of ONNX have them.
TEST(SimplifyTransposes, AFlattenedMapTurnsStoredWeights) {
  Maker make;
  const int map = make.unary("RELU", make.to_nchw(make.input({2, 3, 2, 4})));
  std::vector<std::int8_t> values(5 * 24);
  for (std::int8_t& value : values) value = static_cast<std::int8_t>(make.draw(256) - 128);
  const int stored = make.constant(values, {5, 24}, DataType::kInt8);
  make.tensor(stored).quantization.scale = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f};
  make.tensor(stored).quantization.zero_point = {0, 0, 0, 0, 0};
  const int weights = make.op("DEQUANTIZE", "DequantizeOptions", {}, {stored}, {5, 24});
  const int y = make.op("FULLY_CONNECTED", "FullyConnectedOptions", Maker::no_activation(),
                        {make.reshape(map, {2, 24}), weights, make.numbers({5})}, {2, 5});
  const ir::Model after = expect_same(make.finish({y}), 1e-5);
  EXPECT_EQ(count(after, "TRANSPOSE"), 0) << operators_of(after);
  EXPECT_EQ(count(after, "DEQUANTIZE"), 1);
}

// A convolution over a line of pixels, as importers make it: [n, c, w] by way of [n, c, 1, w].
TEST(SimplifyTransposes, ConvolutionsOfOneDimension) {
  Maker make;
  int x = make.transpose(make.input({1, 16, 4}), {0, 2, 1});
  for (int i = 0; i < 3; ++i) {
    const Shape shape = make.shape(x);
    const int map = make.conv(make.reshape(x, {1, shape[1], 1, shape[2]}), 6, 1);
    x = make.unary("RELU", make.binary("MUL", make.reshape(map, {1, 6, shape[2]}), make.numbers({6, 1})));
  }
  const ir::Model after = expect_same(make.finish({make.transpose(x, {0, 2, 1})}), 1e-5);
  EXPECT_EQ(operators_of(after), "RESHAPE CONV_2D CONV_2D CONV_2D RESHAPE");
}

// Attention: heads are split off by one TRANSPOSE and joined by another.
// Also where each of queries, keys and values has a TRANSPOSE of its own, that of the keys another.
TEST(SimplifyTransposes, AttentionKeepsTheTwoItNeeds) {
  for (const bool joint : {true, false}) {
    SCOPED_TRACE(joint);
    Maker make;
    const int x = make.input({1, 10, 12});
    const auto matmul = [&](int a, int b, Shape shape) {
      return make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", false}, {"adj_y", false}}),
                     {a, b}, std::move(shape));
    };
    std::vector<int> parts;
    if (joint) {
      const int turned = make.transpose(make.reshape(make.dense(x, 36), {1, 10, 3, 3, 4}), {2, 0, 3, 1, 4});
      for (int i = 0; i < 3; ++i) {
        parts.push_back(make.op("GATHER", "GatherOptions", Maker::attributes({{"axis", std::int64_t{0}}}),
                                {turned, make.scalar(i)}, {1, 3, 10, 4}));
      }
      parts[1] = make.transpose(parts[1], {0, 1, 3, 2});
    } else {
      const int axis = make.scalar(2), all = make.dense(x, 36);
      for (int i = 0; i < 3; ++i) parts.push_back(make.add_tensor({1, 10, 12}));
      make.add("SPLIT", "SplitOptions", Maker::attributes({{"num_splits", std::int64_t{3}}}), {axis, all}, parts);
      for (int i = 0; i < 3; ++i) {
        const auto at = static_cast<std::size_t>(i);
        parts[at] =
            make.transpose(make.reshape(parts[at], {1, 10, 3, 4}),
                           i == 1 ? std::vector<std::int32_t>{0, 2, 3, 1} : std::vector<std::int32_t>{0, 2, 1, 3});
      }
    }
    const int scores = matmul(parts[0], parts[1], {1, 3, 10, 10});
    const int weights =
        make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {scores}, {1, 3, 10, 10});
    const int mixed = make.transpose(matmul(weights, parts[2], {1, 3, 10, 4}), {0, 2, 1, 3});
    const int y = make.binary("ADD", x, make.dense(make.reshape(mixed, {1, 10, 12}), 12));
    const ir::Model after = expect_same(make.finish({y}), 1e-5);
    EXPECT_LE(count(after, "TRANSPOSE"), joint ? 2 : 4) << operators_of(after);
  }
}

TEST(SimplifyTransposes, GoWhereTheTensorIsSmallest) {
  Maker make;
  const int x = make.transpose(make.input({1, 16, 16, 8}), {0, 3, 1, 2});
  const int mean = make.reduce("MEAN", make.unary("ABS", x), {2}, true);  // [1, 8, 1, 16]
  const ir::Model after = expect_same(make.finish({mean}), 1e-5);
  ASSERT_EQ(count(after, "TRANSPOSE"), 1);
  EXPECT_EQ(operators_of(after), "ABS MEAN TRANSPOSE");
}

TEST(SimplifyTransposes, WhatCannotBeBetterStays) {
  Maker make;
  const int x = make.input({2, 3, 4});
  const ir::Model before = make.finish({make.transpose(x, {0, 2, 1}), make.unary("ABS", x)});
  EXPECT_EQ(operators_of(expect_same(before, 0)), "TRANSPOSE ABS");
}

TEST(SimplifyTransposes, TheSameTwiceGivesTheSame) {
  Maker make;
  const int x = make.conv(make.to_nchw(make.input({1, 4, 4, 3})), 6, 3);
  const ir::Model before = make.finish({make.to_nhwc(make.conv(make.unary("RELU", x), 2, 1))});
  ir::Model first = before, second = before;
  ASSERT_TRUE(simplify(first).ok() && simplify(second).ok());
  EXPECT_TRUE(first == second);
  ir::Model again = first;
  ASSERT_TRUE(simplify(again).ok());
  EXPECT_TRUE(first == again);
}

}  // namespace
}  // namespace reef::passes::testing

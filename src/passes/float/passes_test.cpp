// SPDX-License-Identifier: Apache-2.0
// What each pass makes of its pattern, and that it computes the same. The models of movement are in
// transposes_test.cpp.
#include <limits>
#include <numeric>

#include "passes/float/test_graph.h"

namespace reef::passes::testing {
namespace {

constexpr double kRounding = 1e-5;

const ir::Operator& first(const ir::Model& model, std::string_view type) {
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == type) return op;
  }
  static const ir::Operator none;
  ADD_FAILURE() << "there is no " << type << " among " << operators_of(model);
  return none;
}
std::string_view activation(const ir::Model& model, std::string_view type) {
  return first(model, type).attributes.get_enum("fused_activation_function");
}

TEST(SimplifyPasses, UnknownNamesAreRefused) {
  Maker make;
  ir::Model model = make.finish({make.unary("RELU", make.input({1, 2}))});
  EXPECT_FALSE(simplify(model, {.disable = {"nonsense"}}).ok());
  EXPECT_TRUE(simplify(model, {.disable = {"transposes"}}).ok());
}

TEST(SimplifyPasses, ConstantsAreFolded) {
  Maker make;
  const int x = make.input({1, 4});
  const int sum = make.binary("ADD", make.numbers({1, 4}), make.numbers({1, 4}));
  const int root = make.unary("EXP", make.transpose(make.reshape(sum, {4, 1}), {1, 0}));
  const ir::Model after = expect_same(make.finish({make.binary("MUL", x, root)}), 0);
  EXPECT_EQ(operators_of(after), "MUL");
  EXPECT_EQ(after.subgraphs[0].tensors.size(), 3u);
  EXPECT_EQ(after.buffers.size(), 2u);
}

TEST(SimplifyPasses, LargeBroadcastsAndQuantizedConstantsAreNotFolded) {
  Maker make;
  const int x = make.input({1, 300, 300, 1});
  const int wide = make.op("BROADCAST_TO", "BroadcastToOptions", {}, {make.number(2, {1}), make.ints({1, 300, 300, 1})},
                           {1, 300, 300, 1});
  const int gathered = make.op("ATAN2", "", {}, {x, wide}, {1, 300, 300, 1});
  const int weights = make.constant(std::vector<std::int8_t>{1, 2}, {2}, DataType::kInt8);
  const int real = make.op("DEQUANTIZE", "", {}, {weights}, {2});
  const ir::Model after = expect_same(make.finish({gathered, make.unary("EXP", real)}), 0);
  EXPECT_EQ(count(after, "BROADCAST_TO"), 1);
  EXPECT_EQ(count(after, "DEQUANTIZE"), 1);
}

TEST(SimplifyPasses, ShapesAreConstants) {
  Maker make;
  const int x = make.input({2, 3, 4});
  const int shape = make.op("SHAPE", "ShapeOptions", {}, {x}, {3}, DataType::kInt32);
  const int rows = make.op("STRIDED_SLICE", "StridedSliceOptions", {},
                           {shape, make.ints({0}), make.ints({1}), make.ints({1})}, {1}, DataType::kInt32);
  const int target =
      make.op("CONCATENATION", "ConcatenationOptions", {}, {rows, make.ints({12})}, {2}, DataType::kInt32);
  const int flat = make.op("RESHAPE", "ReshapeOptions", {}, {x, target}, {2, 12});
  EXPECT_EQ(operators_of(expect_same(make.finish({make.unary("EXP", flat)}), 0)), "RESHAPE EXP");
}

TEST(SimplifyPasses, NothingIsLeftOfNothing) {
  Maker make;
  int x = make.input({1, 4, 4, 2});
  const Shape shape = make.shape(x);
  x = make.unary("TANH", x);
  x = make.reshape(x, shape);
  x = make.transpose(x, {0, 1, 2, 3});
  x = make.binary("MUL", x, make.number(1));
  x = make.binary("ADD", make.number(0, {1, 1}), x);
  x = make.binary("SUB", x, make.number(0));
  x = make.binary("DIV", x, make.number(1));
  x = make.op("CAST", "CastOptions", {}, {x}, shape);
  x = make.op("SLICE", "SliceOptions", {}, {x, make.ints({0, 0, 0, 0}), make.ints({-1, 4, 4, -1})}, shape);
  x = make.op("PAD", "PadOptions", {}, {x, make.constant(std::vector<std::int32_t>(8, 0), {4, 2}, DataType::kInt32)},
              shape);
  x = make.op("TILE", "TileOptions", {}, {x, make.ints({1, 1, 1, 1})}, shape);
  x = make.concatenation({x}, 2);
  x = make.unary("RELU", make.unary("RELU6", make.unary("RELU", x)));
  EXPECT_EQ(operators_of(expect_same(make.finish({x}), 0)), "TANH RELU6");
}

TEST(SimplifyPasses, AnInputThatIsAnOutputKeepsItsOperator) {
  Maker make;
  const int x = make.input({1, 4});
  EXPECT_EQ(operators_of(expect_same(make.finish({make.reshape(x, {1, 4})}), 0)), "RESHAPE");
}

TEST(SimplifyPasses, CommonSubexpressionsAreComputedOnce) {
  Maker make;
  const int x = make.input({1, 4});
  const int a = make.binary("MUL", make.unary("EXP", x), make.number(0.3f)),
            b = make.binary("MUL", make.unary("EXP", x), make.number(0.3f));
  const ir::Model after = expect_same(make.finish({make.binary("SUB", a, make.unary("TANH", b))}), 0);
  EXPECT_EQ(operators_of(after), "EXP MUL TANH SUB");
}

TEST(SimplifyPasses, TwoOutputsOfTheSameValueStayTwo) {
  Maker make;
  const int x = make.input({1, 4});
  const int a = make.unary("EXP", x), b = make.unary("EXP", x);
  EXPECT_EQ(expect_same(make.finish({a, b}), 0).subgraphs[0].outputs.size(), 2u);
}

TEST(SimplifyPasses, DivisionByWhatIsComputedIsAProduct) {
  Maker make;
  const int x = make.unary("LOGISTIC", make.input({1, 4, 4, 6}));
  const int all = make.reduce("SUM", x, {1, 2, 3}, true);
  const ir::Model one = expect_same(make.finish({make.binary("DIV", x, all)}), kRounding);
  EXPECT_EQ(operators_of(one), "LOGISTIC SUM DIV MUL");
  // One for each row, as linear attention divides, or one for each element.
  Maker many;
  const int z = many.unary("LOGISTIC", many.input({1, 4, 4, 6}));
  const ir::Model each = expect_same(many.finish({many.binary("DIV", z, many.reduce("SUM", z, {3}, true))}), kRounding);
  EXPECT_EQ(operators_of(each), "LOGISTIC SUM DIV MUL");
  Maker all_of_them;
  const int a = all_of_them.input({1, 4, 4, 6}), b = all_of_them.unary("LOGISTIC", all_of_them.input({1, 4, 4, 6}));
  EXPECT_EQ(operators_of(expect_same(all_of_them.finish({all_of_them.binary("DIV", a, b)}), kRounding)),
            "LOGISTIC DIV MUL");
  // Several constants divided by something; a single one stays a function of what it is divided by.
  Maker constants;
  const int c = constants.unary("LOGISTIC", constants.input({1, 4, 4, 3}));
  EXPECT_EQ(
      operators_of(expect_same(constants.finish({constants.binary("DIV", constants.numbers({3}), c)}), kRounding)),
      "LOGISTIC DIV MUL");
  Maker number;
  const int d = number.unary("LOGISTIC", number.input({1, 4, 4, 3}));
  EXPECT_EQ(operators_of(expect_same(number.finish({number.binary("DIV", number.number(3), d)}), kRounding)),
            "LOGISTIC DIV");
}

TEST(SimplifyPasses, SigmoidsWrittenOutAreLogistic) {
  const auto one_more = [](Maker& make, int a) { return make.binary("ADD", make.unary("EXP", a), make.number(1)); };
  Maker plain;
  const int negative = plain.unary("NEG", plain.input({1, 4, 4, 6}));
  const ir::Model sigmoid =
      expect_same(plain.finish({plain.binary("DIV", plain.number(1), one_more(plain, negative))}), kRounding);
  EXPECT_EQ(operators_of(sigmoid), "LOGISTIC");
  // The step of a text detector: 1 / (1 + exp(-5 x)).
  Maker steep;
  const int scaled = steep.binary("MUL", steep.input({1, 4, 4, 6}), steep.number(-5));
  const ir::Model step =
      expect_same(steep.finish({steep.binary("DIV", steep.number(1), one_more(steep, scaled))}), kRounding);
  EXPECT_EQ(operators_of(step), "MUL LOGISTIC");
  // SiLU written out, and an exponent without a sign.
  Maker gate;
  const int x = gate.input({1, 4, 4, 6});
  const ir::Model silu =
      expect_same(gate.finish({gate.binary("DIV", x, one_more(gate, gate.unary("NEG", x)))}), kRounding);
  EXPECT_EQ(operators_of(silu), "LOGISTIC MUL");
  Maker falling;
  const int y = falling.input({1, 4, 4, 6});
  const ir::Model fall =
      expect_same(falling.finish({falling.binary("DIV", falling.number(1), one_more(falling, y))}), kRounding);
  EXPECT_EQ(operators_of(fall), "MUL LOGISTIC");
  // Two more is another function.
  Maker other;
  const int z = other.binary("ADD", other.unary("EXP", other.input({1, 4, 4, 6})), other.number(2));
  EXPECT_EQ(operators_of(expect_same(other.finish({other.binary("DIV", other.number(1), z)}), kRounding)),
            "EXP ADD DIV");
}

TEST(SimplifyPasses, AKnownMaskBeforeSoftmaxIsASum) {
  for (const bool masks_true : {true, false}) {
    for (const float low : {-std::numeric_limits<float>::infinity(), -1e9f, -5.0f}) {
      Maker make;
      const int x = make.input({1, 2, 3, 16});
      const int condition =
          make.op("GREATER", "GreaterOptions", {}, {make.numbers({16}), make.number(0)}, {16}, DataType::kBool);
      const int number = make.number(low);
      const int chosen = make.op("SELECT_V2", "SelectV2Options", {},
                                 {condition, masks_true ? number : x, masks_true ? x : number}, {1, 2, 3, 16});
      const int y = make.op("SOFTMAX", "SoftmaxOptions", Maker::attributes({{"beta", 1.0}}), {chosen}, {1, 2, 3, 16});
      EXPECT_EQ(operators_of(expect_same(make.finish({y}), kRounding)), low < -100 ? "ADD SOFTMAX" : "MUL ADD SOFTMAX");
    }
  }
}

TEST(SimplifyPasses, AKnownMaskElsewhereIsAProduct) {
  const auto chosen = [](Maker& make, int a, int b) {
    const int condition =
        make.op("GREATER", "GreaterOptions", {}, {make.numbers({16}), make.number(0)}, {16}, DataType::kBool);
    return make.op("SELECT_V2", "SelectV2Options", {}, {condition, a, b}, {1, 2, 3, 16});
  };
  for (const float number : {0.0f, 2.5f}) {
    for (const bool is_first : {true, false}) {
      Maker make;
      const int x = make.input({1, 2, 3, 16}), constant = make.number(number);
      const int y = is_first ? chosen(make, x, constant) : chosen(make, constant, x);
      EXPECT_EQ(operators_of(expect_same(make.finish({y}), kRounding)), number == 0 ? "MUL" : "MUL ADD");
    }
  }
  Maker both;
  const int x = both.input({1, 2, 3, 16});
  EXPECT_EQ(operators_of(expect_same(both.finish({chosen(both, x, both.unary("TANH", x))}), kRounding)),
            "TANH MUL MUL ADD");
  // The mask may hide infinities: the logarithm of 0, quotients by 0.
  for (const char* const kind : {"LOG", "RSQRT"}) {
    Maker hides;
    const int z = hides.unary(kind, hides.unary("LOGISTIC", hides.input({1, 2, 3, 16})));
    const ir::Model model = expect_same(hides.finish({chosen(hides, z, hides.number(0))}), kRounding);
    EXPECT_NE(operators_of(model).find("SELECT_V2"), std::string::npos) << kind;
  }
}

// ---- Folding into layers ----

TEST(SimplifyPasses, BatchNormalizationGoesIntoTheLayerBefore) {
  for (const char* const kind : {"CONV_2D", "DEPTHWISE_CONV_2D"}) {
    Maker make;
    const int x = make.to_nchw(make.input({1, 6, 6, 4}));
    int y = std::string_view(kind) == "CONV_2D" ? make.conv(x, 4, 3) : make.depthwise(x, 3);
    y = make.binary("MUL", y, make.numbers({1, 4, 1, 1}));
    y = make.binary("ADD", y, make.numbers({4, 1, 1}));
    y = make.binary("SUB", make.number(2), y);
    y = make.binary("DIV", y, make.number(3));
    const ir::Model after = expect_same(make.finish({make.to_nhwc(make.unary("RELU6", y))}), kRounding);
    EXPECT_EQ(operators_of(after), kind);
    EXPECT_EQ(activation(after, kind), "RELU6");
  }
}

TEST(SimplifyPasses, ConstantsGoIntoTransposedConvolutions) {
  Maker make;
  const int x = make.input({1, 4, 4, 3});
  ir::Attributes options = Maker::attributes(
      {{"padding", ir::EnumName{"SAME"}}, {"stride_w", std::int64_t{2}}, {"stride_h", std::int64_t{2}}});
  int y = make.op("TRANSPOSE_CONV", "TransposeConvOptions", options,
                  {make.ints({1, 8, 8, 5}), make.numbers({5, 3, 3, 3}), x}, {1, 8, 8, 5});
  y = make.binary("ADD", make.binary("MUL", y, make.numbers({5})), make.numbers({1, 1, 5}));
  const ir::Model after = expect_same(make.finish({y}), kRounding);
  EXPECT_EQ(operators_of(after), "TRANSPOSE_CONV");
  EXPECT_EQ(first(after, "TRANSPOSE_CONV").version, 3);
}

TEST(SimplifyPasses, WhatVariesOverThePictureStays) {
  Maker make;
  const int x = make.input({1, 4, 4, 3});
  const int y = make.conv_nhwc(x, 4, 3, 1, "SAME");
  EXPECT_EQ(operators_of(expect_same(make.finish({make.binary("ADD", y, make.numbers({4, 4, 1}))}), kRounding)),
            "CONV_2D ADD");
  Maker again;  // somebody else reads the convolution's result
  const int z = again.conv_nhwc(again.input({1, 4, 4, 3}), 4, 3, 1, "SAME");
  EXPECT_EQ(operators_of(expect_same(again.finish({again.binary("MUL", z, again.number(2)), z}), kRounding)),
            "CONV_2D MUL");
}

TEST(SimplifyPasses, NormalizationGoesIntoTheLayerBehind) {
  for (const char* const padding : {"VALID", "SAME"}) {
    Maker make;
    int x = make.input({1, 6, 6, 3});
    x = make.binary("SUB", make.binary("DIV", x, make.number(255)), make.numbers({3}));
    x = make.binary("MUL", x, make.numbers({1, 1, 1, 3}));
    const ir::Model after = expect_same(make.finish({make.conv_nhwc(x, 4, 3, 1, padding)}), kRounding);
    // Behind padding the shift would be missing.
    EXPECT_EQ(operators_of(after), std::string_view(padding) == "VALID" ? "CONV_2D" : "MUL SUB CONV_2D");
  }
}

TEST(SimplifyPasses, NormalizationGoesIntoDepthwiseAndDenseLayersBehind) {
  Maker make;
  const int x = make.input({2, 6});
  const int y = make.binary("SUB", make.number(1), make.binary("MUL", x, make.numbers({1, 6})));
  EXPECT_EQ(operators_of(expect_same(make.finish({make.dense(y, 3)}), kRounding)), "FULLY_CONNECTED");
  Maker again;
  const int map = again.binary("MUL", again.input({1, 4, 4, 3}), again.numbers({3}));
  ir::Attributes options = Maker::window("SAME", 1);
  options.set("depth_multiplier", std::int64_t{2});
  const int wide = again.op("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", options,
                            {map, again.numbers({1, 3, 3, 6}), again.numbers({6})}, {1, 4, 4, 6});
  EXPECT_EQ(operators_of(expect_same(again.finish({wide}), kRounding)), "DEPTHWISE_CONV_2D");
}

int padded(Maker& make, int x, std::vector<std::int32_t> amounts) {
  Shape shape = make.shape(x);
  for (int i = 0; i < 4; ++i) shape[i] += amounts[reef::at(2 * i)] + amounts[static_cast<std::size_t>(2 * i) + 1];
  return make.op("PAD", "PadOptions", {}, {x, make.constant(amounts, {4, 2}, DataType::kInt32)}, shape);
}

TEST(SimplifyPasses, PaddingBecomesTheConvolutionsOwn) {
  const auto result = [](int size, int filter, int stride, int before, int behind) {
    Maker make;
    const int x = make.input({1, size, size, 2});
    const int y = padded(make, x, {0, 0, before, behind, before, behind, 0, 0});
    return operators_of(expect_same(make.finish({make.conv_nhwc(y, 3, filter, stride, "VALID")}), 0));
  };
  EXPECT_EQ(result(7, 3, 1, 1, 1), "CONV_2D");
  EXPECT_EQ(result(7, 3, 2, 1, 1), "CONV_2D");
  EXPECT_EQ(result(8, 3, 2, 0, 1), "CONV_2D");
  EXPECT_EQ(result(8, 3, 2, 1, 1), "PAD CONV_2D");  // SAME would pad behind only
  EXPECT_EQ(result(7, 3, 1, 2, 2), "PAD CONV_2D");
  EXPECT_EQ(result(7, 5, 1, 2, 2), "CONV_2D");
}

TEST(SimplifyPasses, ClampsAreActivations) {
  const auto result = [](float low, float high, bool high_first) {
    Maker make;
    int x = make.binary("SUB", make.input({1, 8}), make.input({1, 8}));
    if (high_first) x = make.binary("MINIMUM", x, make.number(high));
    x = make.binary("MAXIMUM", make.number(low), x);
    if (!high_first) x = make.binary("MINIMUM", x, make.number(high));
    const ir::Model after = expect_same(make.finish({x}), 0);
    return operators_of(after) + " " + std::string(activation(after, "SUB"));
  };
  EXPECT_EQ(result(0, 6, false), "SUB RELU6");
  EXPECT_EQ(result(0, 6, true), "SUB RELU6");
  EXPECT_EQ(result(-1, 1, true), "SUB RELU_N1_TO_1");
  EXPECT_EQ(result(0, 1, true), "SUB RELU_0_TO_1 NONE");
  EXPECT_EQ(result(0, 5, true), "SUB MINIMUM RELU NONE");
  EXPECT_EQ(result(0, std::numeric_limits<float>::infinity(), true), "SUB RELU");
}

TEST(SimplifyPasses, AnActivationOfAnotherScaleIsNotFused) {
  Maker make;
  const int x = make.input({1, 4}, DataType::kInt8);
  const int sum = make.binary("ADD", x, make.unary("TANH", x));
  const int y = make.unary("RELU", sum);
  EXPECT_EQ(operators_of(expect_same(make.finish({y}), 0)), "TANH ADD");
  Maker other;
  const int z = other.unary(
      "RELU", other.binary("ADD", other.input({1, 4}, DataType::kInt8), other.input({1, 4}, DataType::kInt8)));
  other.tensor(z).quantization.scale = {0.1f};
  EXPECT_EQ(operators_of(expect_same(other.finish({z}), 0)), "ADD RELU");
}

// ---- Matrices ----

TEST(SimplifyPasses, ProductsWithConstantMatricesAreDenseLayers) {
  for (const bool turned : {false, true}) {
    Maker make;
    const int x = make.input({2, 5, 6});
    const int matrix = turned ? make.numbers({1, 4, 6}) : make.numbers({6, 4});
    const int product = make.op("BATCH_MATMUL", "BatchMatMulOptions",
                                Maker::attributes({{"adj_x", false}, {"adj_y", turned}}), {x, matrix}, {2, 5, 4});
    const ir::Model after =
        expect_same(make.finish({make.unary("RELU", make.binary("ADD", product, make.numbers({4})))}), kRounding);
    EXPECT_EQ(operators_of(after), "FULLY_CONNECTED");
    EXPECT_EQ(activation(after, "FULLY_CONNECTED"), "RELU");
    EXPECT_EQ(first(after, "FULLY_CONNECTED").inputs.size(), 3u);
  }
}

// Also where the other operand is turned, by a flag or by a TRANSPOSE (similarities to given texts, in YOLO-World).
TEST(SimplifyPasses, ProductsOfTurnedOperandsWithConstantMatricesAreDenseLayers) {
  for (const bool has_flag : {false, true}) {
    Maker make;
    const int x = make.input({2, 6, 5}), turned = has_flag ? x : make.transpose(x, {0, 2, 1});
    const int product =
        make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", has_flag}, {"adj_y", false}}),
                {turned, make.numbers({1, 6, 4})}, {2, 5, 4});
    EXPECT_EQ(operators_of(expect_same(make.finish({product}), kRounding)), "TRANSPOSE FULLY_CONNECTED");
  }
}

TEST(SimplifyPasses, ASwapOfTheLastAxesIsAFlag) {
  Maker make;
  const int a = make.input({2, 5, 6}), b = make.input({2, 4, 6});
  const int product =
      make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", false}, {"adj_y", false}}),
              {a, make.transpose(b, {0, 2, 1})}, {2, 5, 4});
  const ir::Model after = expect_same(make.finish({product}), kRounding);
  EXPECT_EQ(operators_of(after), "BATCH_MATMUL");
  EXPECT_TRUE(first(after, "BATCH_MATMUL").attributes.get_bool("adj_y"));
}

TEST(SimplifyPasses, ASwapBehindRoundingIsAFlag) {
  Maker make;
  const int a = make.input({2, 5, 6}), b = make.input({2, 4, 6});
  const int rounded = make.op("QUANTIZE", "", {}, {make.transpose(b, {0, 2, 1})}, {2, 6, 4}, DataType::kInt8);
  const int product =
      make.op("BATCH_MATMUL", "BatchMatMulOptions", Maker::attributes({{"adj_x", false}, {"adj_y", false}}),
              {a, make.op("DEQUANTIZE", "", {}, {rounded}, {2, 6, 4})}, {2, 5, 4});
  EXPECT_EQ(operators_of(expect_same(make.finish({product}), kRounding)), "QUANTIZE DEQUANTIZE BATCH_MATMUL");
}

TEST(SimplifyPasses, BroadcastsThatHappenAnyway) {
  Maker make;
  const int x = make.input({2, 5}), y = make.input({2, 1});
  const int wide = make.op("BROADCAST_TO", "BroadcastToOptions", {}, {y, make.ints({2, 5})}, {2, 5});
  EXPECT_EQ(operators_of(expect_same(make.finish({make.binary("SUB", x, wide)}), 0)), "SUB");
}

// A mask of padded tokens: repeated for all heads, multiplied, then added.
TEST(SimplifyPasses, BroadcastsGoBehindSingleNumbers) {
  Maker make;
  const int x = make.input({2, 3, 5}), y = make.input({1, 1, 5});
  const int wide = make.op("BROADCAST_TO", "BroadcastToOptions", {}, {y, make.ints({2, 1, 5})}, {2, 1, 5});
  const int sum = make.binary("ADD", x, make.binary("MUL", wide, make.number(3)));
  EXPECT_EQ(operators_of(expect_same(make.finish({sum}), 0)), "MUL ADD");
}

TEST(SimplifyPasses, EqualPiecesAreASplit) {
  for (const bool is_whole : {true, false}) {
    Maker make;
    const int x = make.unary("TANH", make.input({2, 6}));
    const auto piece = [&](int begin) {
      return make.op("SLICE", "SliceOptions", {}, {x, make.ints({0, begin}), make.ints({-1, 2})}, {2, 2});
    };
    const int product = make.binary("MUL", piece(4), piece(0));
    const int y = is_whole ? make.binary("SUB", piece(2), product) : product;
    const ir::Model after = expect_same(make.finish({y}), 0);
    EXPECT_EQ(operators_of(after), is_whole ? "TANH SPLIT MUL SUB" : "TANH SLICE SLICE MUL");
  }
}

TEST(SimplifyPasses, PicksOfNeighboursAreOneSlice) {
  for (const bool is_single : {true, false}) {
    Maker make;
    const int x = make.unary("TANH", make.input({6, 2, 4}));
    const int piece = make.op("SLICE", "SliceOptions", {}, {x, make.ints({1, 0, 1}), make.ints({5, 2, 3})}, {5, 2, 3});
    const int indices = is_single ? make.scalar(4) : make.ints({1, 2, 3});
    const int y = make.op("GATHER", "GatherOptions", Maker::attributes({{"axis", std::int64_t{0}}}), {piece, indices},
                          is_single ? Shape{2, 3} : Shape{3, 2, 3});
    const ir::Model after = expect_same(make.finish({make.unary("TANH", y)}), 0);
    EXPECT_EQ(operators_of(after), is_single ? "SLICE TANH TANH RESHAPE" : "SLICE TANH TANH");
  }
}

// PyTorch's newer exporter writes as_strided, a view of memory, as a GATHER of all elements or of some neighbours.
TEST(SimplifyPasses, PicksOfAnyRankAreForms) {
  for (const int count : {8, 6}) {
    Maker make;
    const int x = make.unary("TANH", make.input({8}));
    std::vector<std::int32_t> places(static_cast<std::size_t>(count));
    std::iota(places.begin(), places.end(), 8 - count);
    const int indices = make.constant(places, {1, 2, count / 2, 1}, DataType::kInt32);
    const int y = make.op("GATHER", "GatherOptions", Maker::attributes({{"axis", std::int64_t{0}}}), {x, indices},
                          {1, 2, count / 2, 1});
    const ir::Model after = expect_same(make.finish({make.unary("ABS", y)}), 0);
    EXPECT_EQ(passes::testing::count(after, "GATHER"), 0) << operators_of(after);
    EXPECT_EQ(passes::testing::count(after, "SLICE"), count == 8 ? 0 : 1) << operators_of(after);
  }
}

TEST(SimplifyPasses, OtherPicksStay) {
  for (const std::vector<std::int32_t>& indices : {std::vector{2, 1}, std::vector{0, 2}}) {
    Maker make;
    const int x = make.unary("TANH", make.input({6, 4}));
    const int y = make.op("GATHER", "GatherOptions", Maker::attributes({{"axis", std::int64_t{0}}}),
                          {x, make.ints(indices)}, {2, 4});
    EXPECT_EQ(operators_of(expect_same(make.finish({make.unary("TANH", y)}), 0)), "TANH GATHER TANH");
  }
}

TEST(SimplifyPasses, OpenBatchesAreFixed) {
  Maker make;
  const int x = make.input({1, 4, 4, 2});
  make.tensor(x).shape_signature = {-1, 4, 4, 2};
  const int y = make.binary("MUL", make.conv_nhwc(x, 3, 3, 1, "SAME"), make.number(2));
  for (const int each : {y, y - 1}) {
    if (make.shape(each).rank() == 4) make.tensor(each).shape_signature = {-1, 4, 4, 3};
  }
  const ir::Model before = make.finish({y});
  const ir::Model after = expect_same(before, kRounding);
  EXPECT_EQ(operators_of(after), "CONV_2D");
  for (const ir::Tensor& tensor : after.subgraphs[0].tensors)
    EXPECT_TRUE(tensor.shape_signature.empty()) << tensor.name;
  EXPECT_EQ(operators_of(expect_same(before, kRounding, {.disable = {"fixed-shapes"}})), "CONV_2D MUL");
}

// ---- Adaptive pools ----

// Averages of [first[i], last[i]) of rows and columns, as PyTorch's newer exporter writes those of equal sizes, or of
// sizes that differ: short windows are filled up with zeros.
ir::Model gathered_average(const std::vector<std::int32_t>& first, const std::vector<std::int32_t>& last, int side,
                           int wrong) {
  Maker make;
  const int channels = 5, count = static_cast<int>(first.size());
  int longest = 0;
  bool is_even = true;
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<std::size_t>(i);
    longest = std::max(longest, last[n] - first[n]);
    is_even = is_even && last[n] - first[n] == last[0] - first[0];
  }
  const auto at = [&](int i, int a) { return std::min(first[reef::at(i)] + a, side - 1); };
  const auto length = [&](int i) { return last[reef::at(i)] - first[reef::at(i)]; };
  std::vector<std::int32_t> table;
  std::vector<std::uint8_t> is_beyond;
  std::vector<float> shares;
  for (int i = 0; i < count; ++i) {
    for (int a = 0; a < longest; ++a) {
      for (int j = 0; j < count; ++j) {
        for (int b = 0; b < longest; ++b) {
          table.insert(table.end(), {at(i, a), at(j, b)});
          is_beyond.push_back(a >= length(i) || b >= length(j));
        }
      }
    }
    for (int j = 0; j < count; ++j) shares.push_back(1.0f / static_cast<float>(length(i) * length(j)));
  }
  if (wrong == 1) std::swap(table[0], table[table.size() - 2]);  // a window of pixels that do not lie together
  if (wrong == 2) shares[0] *= 2;
  const int x = make.reshape(make.input({1, side, side, channels}), {side, side, 1, channels});
  const int indices = make.constant(table, {count, longest, count, longest, 2}, DataType::kInt32);
  const int pixels =
      make.op("GATHER_ND", "GatherNdOptions", {}, {x, indices}, {count, longest, count, longest, 1, channels});
  int y = make.transpose(pixels, {4, 5, 0, 1, 2, 3});
  if (!is_even || wrong == 2) {
    const int mask = make.constant(is_beyond, {count, longest, count, longest}, DataType::kBool);
    y = make.op("SELECT_V2", "SelectV2Options", {}, {mask, make.number(0), y},
                {1, channels, count, longest, count, longest});
    y = make.reduce("SUM", y, {3, 5}, false);
    y = make.binary("MUL", y, make.constant(shares, {count, count}, DataType::kFloat32));
  } else {
    y = make.reduce("MEAN", y, {3, 5}, false);
  }
  return make.finish({y});
}

TEST(SimplifyPasses, GatheredAveragesArePools) {
  const ir::Model even = expect_same(gathered_average({0, 2, 4}, {3, 5, 7}, 7, 0), kRounding);
  EXPECT_EQ(operators_of(even), "AVERAGE_POOL_2D TRANSPOSE");
  const std::string uneven = operators_of(expect_same(gathered_average({0, 1, 3}, {2, 4, 5}, 5, 0), kRounding));
  EXPECT_EQ(uneven.find("GATHER_ND"), std::string::npos) << uneven;
  EXPECT_NE(uneven.find("AVERAGE_POOL_2D"), std::string::npos) << uneven;
  for (const int wrong : {1, 2}) {
    const std::string kept = operators_of(expect_same(gathered_average({0, 2, 4}, {3, 5, 7}, 7, wrong), kRounding));
    EXPECT_NE(kept.find("GATHER_ND"), std::string::npos) << kept;
  }
}

}  // namespace
}  // namespace reef::passes::testing

// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/from_operator.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace reef::darwinn {
namespace {

ir::Model parsed(const std::string& text) {
  const auto model = ir::parse(text);
  EXPECT_TRUE(model.ok()) << model.status().message();
  if (!model.ok()) {
    ir::Model nothing;
    nothing.subgraphs.resize(1);
    nothing.subgraphs[0].operators.resize(1);
    return nothing;
  }
  EXPECT_TRUE(ir::verify(*model).ok()) << ir::verify(*model).message();
  return *model;
}

Result<LayerParameters> parameters_of(const ir::Model& model, const LayerOptions& options = {}) {
  return layer_parameters_of(model, model.subgraphs[0], model.subgraphs[0].operators[0], options);
}
Result<LayerRequantization> constants_of(const ir::Model& model, Presence presence) {
  return layer_requantization_of(model, model.subgraphs[0], model.subgraphs[0].operators[0], presence);
}

std::string model_text(const std::string& input, const std::string& weights, const std::string& bias,
                       const std::string& output, const std::string& op) {
  return "model { subgraph \"main\" inputs(%0) outputs(%3) {\n %0 \"in\" : " + input + "\n %1 \"w\" : " + weights +
         "\n %2 \"b\" : " + bias + "\n %3 \"out\" : " + output + "\n %3 = " + op + "\n} }";
}

constexpr char kQuant[] = " quant(scale=0.5, zero_point=-3)";
const std::string kFullyConnected =
    "FULLY_CONNECTED(%0, %1, %2) code=9 FullyConnectedOptions{fused_activation_function=RELU}";

TEST(FromOperator, Int8FullyConnectedPerTensor) {
  const ir::Model model =
      parsed(model_text("int8[1, 3] quant(scale=0.5, zero_point=-3)",
                        "int8[2, 3] quant(scale=0.25, zero_point=0) buffer=1 = [1, -1, 127, -128, 0, 5]",
                        "int32[2] buffer=2 = [100, -100]", "int8[1, 2] quant(scale=2, zero_point=4)", kFullyConnected));
  const auto layer = parameters_of(model);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->shape, (LayerShape{LayerKind::kFullyConnected, 1, 1, 3, 2}));
  EXPECT_EQ(layer->weights, (std::vector<std::uint8_t>{129, 127, 255, 0, 128, 133}));
  EXPECT_EQ(layer->weight_zero_point, 128);
  EXPECT_EQ(layer->biases, (std::vector<std::int32_t>{100, -100}));
  EXPECT_EQ(layer->presence(), (Presence{false, true, false}));
  const auto constants = constants_of(model, layer->presence());
  ASSERT_TRUE(constants.ok()) << constants.status().message();
  EXPECT_EQ(*constants, (LayerRequantization{0.0625f, {123.0f, 0.0f}, 125, 132, 128}));
  const auto source = source_weights_of(*layer, "FULLY_CONNECTED", ir::DataType::kInt8);
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(source->shape, (ir::Shape{2, 3}));
  EXPECT_EQ(source->weights, (std::vector<std::uint8_t>{1, 255, 127, 128, 0, 5}));
  EXPECT_EQ(source->biases, (std::vector<std::int32_t>{100, -100}));
}

TEST(FromOperator, ScalesPerChannelGoIntoTheChunk) {
  const ir::Model model =
      parsed(model_text("int8[1, 2] quant(scale=0.5, zero_point=0)",
                        "int8[2, 2] quant(scale=[0.25, 0.125], zero_point=[0, 0]) buffer=1 = [1, 2, 3, 4]",
                        "int32[2] buffer=2 = [0, 0]", "int8[1, 2] quant(scale=2, zero_point=0)", kFullyConnected));
  const auto layer = parameters_of(model);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->presence(), (Presence{true, false, true}));  // the bias is all zeros
  EXPECT_EQ(layer->multipliers, (std::vector<float>{0.0625f, 0.03125f}));
  const auto constants = constants_of(model, layer->presence());
  ASSERT_TRUE(constants.ok());
  EXPECT_EQ(constants->multiplier, 1.0f);
  EXPECT_EQ(constants->weight_zero_point, 0);
  EXPECT_FALSE(constants_of(model, Presence{}).ok());  // one multiplier cannot stand for both
}

TEST(FromOperator, EqualScalesPerChannelStayInTheProgram) {
  const ir::Model model =
      parsed(model_text("int8[1, 2] quant(scale=0.5, zero_point=0)",
                        "int8[2, 2] quant(scale=[0.25, 0.25], zero_point=[0, 0]) buffer=1 = [1, 2, 3, 4]",
                        "int32[2] buffer=2 = [0, 1]", "int8[1, 2] quant(scale=2, zero_point=0)", kFullyConnected));
  const auto layer = parameters_of(model);
  ASSERT_TRUE(layer.ok());
  EXPECT_EQ(layer->presence(), (Presence{false, true, true}));
  EXPECT_EQ(constants_of(model, layer->presence())->multiplier, 0.0625f);
}

TEST(FromOperator, ZeroBiasIsDroppedUnlessAskedFor) {
  const ir::Model model = parsed(model_text(
      "uint8[1, 2] quant(scale=0.5, zero_point=7)", "uint8[1, 2] quant(scale=0.25, zero_point=9) buffer=1 = [1, 200]",
      "int32[1] buffer=2 = [0]", "uint8[1, 1] quant(scale=2, zero_point=0)", kFullyConnected));
  EXPECT_TRUE(parameters_of(model)->biases.empty());
  LayerOptions keep;
  keep.keep_zero_biases = true;
  EXPECT_EQ(parameters_of(model, keep)->biases, (std::vector<std::int32_t>{0}));
  EXPECT_EQ(parameters_of(model)->weights, (std::vector<std::uint8_t>{1, 200}));  // uint8 as it is
  EXPECT_EQ(parameters_of(model)->weight_zero_point, 9);
}

TEST(FromOperator, AskedForArraysAreFilled) {
  const ir::Model plain = parsed(model_text(
      "int8[1, 2] quant(scale=0.5, zero_point=0)", "int8[2, 2] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2, 3, 4]",
      "int32[2] buffer=2 = [0, 0]", "int8[1, 2] quant(scale=2, zero_point=0)", kFullyConnected));
  LayerOptions all;
  all.presence = Presence{true, true, true};
  const auto layer = parameters_of(plain, all);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->multipliers, (std::vector<float>{0.0625f, 0.0625f}));
  EXPECT_EQ(layer->biases, (std::vector<std::int32_t>{0, 0}));
  EXPECT_TRUE(layer->has_zero_points);
}

TEST(FromOperator, NeededArraysCannotBeLeftOut) {
  LayerOptions none;
  none.presence = Presence{};
  const ir::Model per_channel =
      parsed(model_text("int8[1, 2] quant(scale=0.5, zero_point=0)",
                        "int8[2, 2] quant(scale=[0.25, 0.125], zero_point=[0, 0]) buffer=1 = [1, 2, 3, 4]",
                        "int32[2] buffer=2 = [0, 0]", "int8[1, 2] quant(scale=2, zero_point=0)", kFullyConnected));
  EXPECT_FALSE(parameters_of(per_channel, none).ok());
  const ir::Model biased = parsed(model_text(
      "int8[1, 2] quant(scale=0.5, zero_point=0)", "int8[2, 2] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2, 3, 4]",
      "int32[2] buffer=2 = [0, 3]", "int8[1, 2] quant(scale=2, zero_point=0)", kFullyConnected));
  EXPECT_FALSE(parameters_of(biased, none).ok());
}

const std::string kConvolution =
    "CONV_2D(%0, %1, %2) code=3 Conv2DOptions{padding=SAME, stride_w=1, stride_h=1, fused_activation_function=RELU6}";
const std::string kDepthwise =
    "DEPTHWISE_CONV_2D(%0, %1, %2) code=4 DepthwiseConv2DOptions{padding=SAME, stride_w=1, stride_h=1, "
    "depth_multiplier=1, "
    "fused_activation_function=NONE}";

TEST(FromOperator, Convolution) {
  const ir::Model model = parsed(
      model_text("uint8[1, 4, 4, 1] quant(scale=0.5, zero_point=0)",
                 "uint8[2, 1, 2, 1] quant(scale=0.25, zero_point=100) buffer=1 = [1, 2, 3, 4]",
                 "int32[2] buffer=2 = [1, 2]", "uint8[1, 4, 4, 2] quant(scale=0.0625, zero_point=10)", kConvolution));
  LayerOptions options;
  options.order = LoopOrder::channels_first();
  const auto layer = parameters_of(model, options);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->shape, (LayerShape{LayerKind::kConvolution, 1, 2, 1, 2}));
  EXPECT_EQ(layer->order, LoopOrder::channels_first());
  EXPECT_EQ(constants_of(model, layer->presence())->clamp, (numeric::ChipClamp{96.0f, 0.0f}));  // 6 / 0.0625
  EXPECT_EQ(source_weights_of(*layer, "CONV_2D", ir::DataType::kUInt8)->weights,
            (std::vector<std::uint8_t>{1, 2, 3, 4}));
}

TEST(FromOperator, DepthwiseOfManyChannels) {
  const ir::Model model = parsed(
      model_text("int8[1, 4, 4, 2] quant(scale=0.5, zero_point=0)",
                 "int8[1, 1, 2, 2] quant(scale=[0.5, 0.25], zero_point=[0, 0], dimension=3) buffer=1 = [1, 2, 3, 4]",
                 "int32[2] buffer=2 = [1, 2]", "int8[1, 4, 4, 2] quant(scale=0.5, zero_point=0)", kDepthwise));
  const auto layer = parameters_of(model);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->shape, (LayerShape{LayerKind::kDepthwise, 1, 2, 2, 2}));
  EXPECT_EQ(layer->weights, (std::vector<std::uint8_t>{129, 130, 131, 132}));
  EXPECT_EQ(layer->multipliers, (std::vector<float>{0.5f, 0.25f}));
  const auto source = source_weights_of(*layer, "DEPTHWISE_CONV_2D", ir::DataType::kInt8);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->shape, (ir::Shape{1, 1, 2, 2}));
  EXPECT_EQ(source->weights, (std::vector<std::uint8_t>{1, 2, 3, 4}));
}

TEST(FromOperator, DepthwiseOfOneChannelTurnsConvolutionAndBack) {
  const ir::Model model = parsed(
      model_text("uint8[1, 4, 4, 1] quant(scale=0.5, zero_point=0)",
                 "uint8[1, 1, 2, 3] quant(scale=0.5, zero_point=0) buffer=1 = [1, 2, 3, 4, 5, 6]",
                 "int32[3] buffer=2 = [1, 2, 3]", "uint8[1, 4, 4, 3] quant(scale=0.5, zero_point=0)", kDepthwise));
  const auto layer = parameters_of(model);
  ASSERT_TRUE(layer.ok()) << layer.status().message();
  EXPECT_EQ(layer->shape, (LayerShape{LayerKind::kConvolution, 1, 2, 1, 3}));
  EXPECT_EQ(layer->weights, (std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6}));
  const auto source = source_weights_of(*layer, "DEPTHWISE_CONV_2D", ir::DataType::kUInt8);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->shape, (ir::Shape{1, 1, 2, 3}));
  EXPECT_EQ(source->weights, (std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_FALSE(source_weights_of(*layer, "FULLY_CONNECTED", ir::DataType::kUInt8).ok());
  EXPECT_FALSE(source_weights_of(*layer, "DEPTHWISE_CONV_2D", ir::DataType::kInt16).ok());
}

// Each case breaks one thing; the message names it.
TEST(FromOperator, Refusals) {
  const std::string in = "int8[1, 2] quant(scale=0.5, zero_point=0)";
  const std::string w = "int8[2, 2] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2, 3, 4]";
  const std::string b = "int32[2] buffer=2 = [0, 1]";
  const std::string out = "int8[1, 2] quant(scale=2, zero_point=0)";
  const struct {
    std::string input, weights, bias, output, op, message;
  } kCases[] = {
      {"float32[1, 2]", w, b, out, kFullyConnected, "float32"},
      {"int16[1, 2] quant(scale=0.5, zero_point=0)", w, b, out, kFullyConnected, "int16"},
      {in, "int8[2, 2] buffer=1 = [1, 2, 3, 4]", b, out, "CONV_2D(%0, %1, %2) code=3", "rank 4"},
      {"int8[1, 2]", w, b, out, kFullyConnected, "no scale"},
      {"int8[1, 2] quant(scale=-1, zero_point=0)", w, b, out, kFullyConnected, "not a positive number"},
      {"int8[1, 2] quant(scale=[1, 2], zero_point=[0, 0], dimension=1)", w, b, out, kFullyConnected, "2 scales"},
      {in, "int4[2, 2] quant(scale=0.25, zero_point=0) buffer=1 = hex\"21 43\"", b, out, kFullyConnected, "int4"},
      {in, w, "int64[2] buffer=2 = [0, 1]", out, kFullyConnected, "int64"},
      {in, w, b, out, "SOFTMAX(%0, %1, %2) code=25", "no layer parameters"},
      {in, "int8[2, 2] quant(scale=0.25, zero_point=300) buffer=1 = [1, 2, 3, 4]", b, out, kFullyConnected,
       "zero point 300"},
      {in, "int8[2, 2] quant(scale=[1, 2], zero_point=[0, 1]) buffer=1 = [1, 2, 3, 4]", b, out, kFullyConnected,
       "different zero points"},
      {in, "int8[2, 2] quant(scale=[1, 2], zero_point=[0, 0], dimension=1) buffer=1 = [1, 2, 3, 4]", b, out,
       kFullyConnected, "along dimension 1"},
      {in, w, b, out, "FULLY_CONNECTED(%0, %1, %2) code=9 FullyConnectedOptions{weights_format=SHUFFLED4x16INT8}",
       "SHUFFLED4x16INT8"},
      {"int8[1, 4, 4, 4] quant(scale=0.5, zero_point=0)",
       "int8[2, 1, 1, 2] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2, 3, 4]", b,
       "int8[1, 4, 4, 2] quant(scale=2, zero_point=0)", kConvolution, "grouped"},
      {"int8[1, 4, 4, 2] quant(scale=0.5, zero_point=0)",
       "int8[1, 1, 1, 4] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2, 3, 4]", "int32[4] buffer=2 = [0, 1, 2, 3]",
       "int8[1, 4, 4, 4] quant(scale=2, zero_point=0)", kDepthwise, "4 channels of 2"},
  };
  for (const auto& c : kCases) {
    const ir::Model model = parsed(model_text(c.input, c.weights, c.bias, c.output, c.op));
    const auto layer = parameters_of(model);
    ASSERT_FALSE(layer.ok()) << c.message;
    EXPECT_NE(layer.status().message().find(c.message), std::string::npos) << layer.status().message();
  }
}

TEST(FromOperator, ComputedWeightsAreRefused) {
  const ir::Model model =
      parsed("model { subgraph \"main\" inputs(%0, %1) outputs(%2) {\n %0 \"in\" : int8[1, 2]" + std::string(kQuant) +
             "\n %1 \"w\" : int8[2, 2]" + kQuant + "\n %2 \"out\" : int8[1, 2]" + kQuant +
             "\n %2 = FULLY_CONNECTED(%0, %1, %none) code=9\n} }");
  const auto layer = parameters_of(model);
  ASSERT_FALSE(layer.ok());
  EXPECT_NE(layer.status().message().find("computed"), std::string::npos) << layer.status().message();
}

TEST(FromOperator, UnknownActivationsAreRefused) {
  const ir::Model model = parsed(model_text(
      "int8[1, 2] quant(scale=0.5, zero_point=0)", "int8[1, 2] quant(scale=0.25, zero_point=0) buffer=1 = [1, 2]",
      "int32[1] buffer=2 = [1]", "int8[1, 1] quant(scale=2, zero_point=0)",
      "FULLY_CONNECTED(%0, %1, %2) code=9 FullyConnectedOptions{fused_activation_function=TANH}"));
  ASSERT_TRUE(parameters_of(model).ok());
  const auto constants = constants_of(model, Presence{false, true, false});
  ASSERT_FALSE(constants.ok());
  EXPECT_NE(constants.status().message().find("TANH"), std::string::npos);
}

}  // namespace
}  // namespace reef::darwinn

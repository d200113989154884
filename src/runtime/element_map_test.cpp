// SPDX-License-Identifier: Apache-2.0
#include "runtime/element_map.h"

#include <gtest/gtest.h>

namespace reef::runtime {
namespace {

ir::Tensor tensor(std::string name, ir::Shape shape, float scale) {
  ir::Tensor result;
  result.name = std::move(name);
  result.type = ir::DataType::kUInt8;
  result.shape = std::move(shape);
  result.has_quantization = true;
  result.quantization.scale = {scale};
  result.quantization.zero_point = {10};
  return result;
}

ir::Operator op(std::string type, std::int32_t code, std::vector<std::int32_t> inputs, std::int32_t output) {
  ir::Operator result;
  result.type = std::move(type);
  result.builtin_code = code;
  result.inputs = std::move(inputs);
  result.outputs = {output};
  return result;
}

// a [1, 2, 1, 2] is padded by one row above, b has another scale; both are joined along the channels, and the joint is
// added to itself.
ir::Model sample() {
  ir::Model model;
  model.buffers.resize(2);
  const std::array<std::int32_t, 8> paddings = {0, 0, 1, 0, 0, 0, 0, 0};
  model.buffers[1].data = Bytes::copy_of({reinterpret_cast<const std::uint8_t*>(paddings.data()), sizeof paddings});
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  ir::Tensor amounts;
  amounts.name = "paddings";
  amounts.type = ir::DataType::kInt32;
  amounts.shape = ir::Shape({4, 2});
  amounts.buffer = 1;
  graph.tensors = {
      tensor("a", {1, 2, 1, 2}, 0.5f),      tensor("b", {1, 3, 1, 1}, 0.25f),    amounts,
      tensor("padded", {1, 3, 1, 2}, 0.5f), tensor("joint", {1, 3, 1, 3}, 0.5f), tensor("sum", {1, 3, 1, 3}, 1.0f)};
  graph.inputs = {0, 1};
  graph.outputs = {5};
  graph.operators = {op("PAD", 34, {0, 2}, 3), op("CONCATENATION", 2, {3, 1}, 4), op("ADD", 0, {4, 4}, 5)};
  graph.operators[0].options_type = "PadOptions";
  graph.operators[1].options_type = "ConcatenationOptions";
  graph.operators[1].attributes.set("axis", std::int64_t{3});
  graph.operators[2].options_type = "AddOptions";
  return model;
}

class ElementMapsTest : public ::testing::Test {
 protected:
  ElementMapsTest() : model_(sample()), network_(model_, {0, 1, 2}), maps_(network_) {}
  ir::Model model_;
  retarget::Network network_;
  ElementMaps maps_;
};

TEST_F(ElementMapsTest, MovesAreTracedBackAsFarAsTheQuantizationStays) {
  const auto joint = maps_.origins(4);
  ASSERT_TRUE(joint.ok()) << joint.status().message();
  // b is requantized on its way: those elements are the joint's own.
  const std::vector<Element> expected = {{-1, 0}, {-1, 0}, {4, 2}, {0, 0}, {0, 1}, {4, 5}, {0, 2}, {0, 3}, {4, 8}};
  EXPECT_EQ(**joint, expected);
  const auto sum = maps_.origins(5);
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ((**sum)[4], (Element{5, 4}));
}

TEST_F(ElementMapsTest, PlacesAreTheOtherWayRound) {
  const auto of_a = maps_.places(0, 4);
  ASSERT_TRUE(of_a.ok()) << of_a.status().message();
  EXPECT_EQ(**of_a, (std::vector<std::int32_t>{3, 4, 6, 7}));
  const auto of_joint = maps_.places(4, 4);
  ASSERT_TRUE(of_joint.ok());
  EXPECT_EQ((**of_joint)[2], 2);
  EXPECT_EQ((**of_joint)[3], ElementMaps::kNowhere);
}

TEST_F(ElementMapsTest, WhatIsMadeOfPaddingAloneIsConstant) {
  const auto sum = maps_.constants(5);
  ASSERT_TRUE(sum.ok()) << sum.status().message();
  EXPECT_EQ(**sum, (std::vector<bool>{true, true, false, false, false, false, false, false, false}));
}

}  // namespace
}  // namespace reef::runtime

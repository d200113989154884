// SPDX-License-Identifier: Apache-2.0
#include "retarget/network.h"

#include <gtest/gtest.h>

#include "retarget/provenance.h"
#include "retarget/sample_package.h"

namespace reef::retarget {
namespace {

ir::Operator make_op(std::string type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
  ir::Operator op;
  op.type = std::move(type);
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  return op;
}

// a (8 channels), b (4 channels) -> c = [a, b] -> d = reshaped; e = quantized to another scale.
ir::Model joined() {
  const auto tensor = [](std::string name, ir::Shape shape, float scale) {
    return testing::sample_tensor(std::move(name), ir::DataType::kUInt8, std::move(shape), 0, scale, 5);
  };
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph graph;
  graph.tensors = {tensor("a", {1, 2, 2, 8}, 1), tensor("b", {1, 2, 2, 4}, 1), tensor("c", {1, 2, 2, 12}, 1),
                   tensor("d", {1, 48}, 1), tensor("e", {1, 48}, 2)};
  ir::Operator concat = make_op("CONCATENATION", {0, 1}, {2});
  concat.attributes.set("axis", std::int64_t{3});
  graph.operators = {concat, make_op("RESHAPE", {2}, {3}), make_op("QUANTIZE", {3}, {4})};
  graph.inputs = {0, 1};
  graph.outputs = {4};
  model.subgraphs = {graph};
  return model;
}

TEST(Network, KnowsWhatATensorAlsoIs) {
  const ir::Model model = joined();
  const Network network(model, {0, 1, 2});
  EXPECT_EQ(network.is_also(0), (std::set<std::int32_t>{0, 2, 3}));
  EXPECT_TRUE(network.all_are({0, 1}, 3));
  EXPECT_FALSE(network.all_are({0, 1}, 4));
  EXPECT_FALSE(network.all_are({}, 3));
  EXPECT_TRUE(network.is_free(0));
  EXPECT_TRUE(network.is_free(1));
  EXPECT_FALSE(network.is_free(2));  // changes the scale
}

TEST(Network, KnowsWhereChannelsComeFrom) {
  const ir::Model model = joined();
  const Network network(model, {0, 1, 2});
  EXPECT_TRUE(network.may_supply(0, 2, 7));
  EXPECT_FALSE(network.may_supply(0, 2, 8));
  EXPECT_TRUE(network.may_supply(1, 2, 8));
  EXPECT_FALSE(network.may_supply(1, 2, 0));
  EXPECT_TRUE(network.may_supply(1, 3, 0));  // order inside a reshaped tensor is not followed
}

TEST(Network, ChipNumbersAreUnsigned) {
  ir::Tensor tensor = testing::sample_tensor("t", ir::DataType::kInt8, {1}, 0, 0.5f, -128);
  EXPECT_EQ(chip_tensor(tensor), (ChipTensor{0.5f, 0}));
  tensor.type = ir::DataType::kInt16;
  tensor.quantization.zero_point = {0};
  EXPECT_EQ(chip_tensor(tensor), (ChipTensor{0.5f, 32768}));
  tensor.type = ir::DataType::kUInt8;
  tensor.quantization.zero_point = {256};
  EXPECT_FALSE(chip_tensor(tensor));
  tensor.quantization.zero_point = {0};
  tensor.quantization.scale = {-1};
  EXPECT_FALSE(chip_tensor(tensor));
  tensor.quantization.scale = {1, 1};
  EXPECT_FALSE(chip_tensor(tensor));
}

TEST(OffsetSet, MergesRuns) {
  OffsetSet set;
  for (const std::uint32_t offset : {10u, 11u, 12u, 5u, 6u, 12u, 7u, 100u}) set.add(offset);
  set.finish();
  EXPECT_EQ(set.runs(), (std::vector<std::pair<std::uint32_t, std::uint32_t>>{{5, 8}, {10, 13}, {100, 101}}));
  EXPECT_EQ(set.size(), 7u);
  EXPECT_EQ(set.first(), 5u);
  EXPECT_EQ(set.end(), 101u);
}

}  // namespace
}  // namespace reef::retarget

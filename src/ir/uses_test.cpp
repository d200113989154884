// SPDX-License-Identifier: Apache-2.0
#include "ir/uses.h"

#include <gtest/gtest.h>

namespace reef::ir {
namespace {

Operator op(std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
  Operator result;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  return result;
}

// 0 is an input, 1 a constant; operator 0 makes 2 of both, 1 makes 3 of 2 twice, 2 makes 4 of 2 and nothing.
Model sample() {
  Model model;
  model.subgraphs.resize(1);
  Subgraph& graph = model.subgraphs[0];
  graph.tensors.resize(5);
  graph.inputs = {0};
  graph.outputs = {3};
  graph.operators = {op({0, 1}, {2}), op({2, 2}, {3}), op({2, -1}, {4})};
  return model;
}

TEST(Uses, ProducersAndConsumersAreThoseOfTheOperators) {
  const Uses uses(sample());
  EXPECT_EQ(uses.producer(0), -1);
  EXPECT_EQ(uses.producer(2), 0);
  EXPECT_EQ(uses.consumers(2), (std::vector<std::int32_t>{1, 2}))
      << "an operator that reads a tensor twice counts once";
  EXPECT_TRUE(uses.is_input(0));
  EXPECT_FALSE(uses.is_input(1));
  EXPECT_TRUE(uses.is_output(3));
  EXPECT_EQ(uses.only_consumer(1), 0);
  EXPECT_EQ(uses.only_consumer(2), -1);
  EXPECT_EQ(uses.only_consumer(3), -1) << "the graph returns it";
}

TEST(Uses, OperatorsThatAreLeftOutNeitherComputeNorRead) {
  const std::vector<std::int32_t> chosen = {1};
  const Uses uses(sample(), chosen);
  EXPECT_EQ(uses.producer(2), -1);
  EXPECT_EQ(uses.producer(3), 1);
  EXPECT_EQ(uses.only_consumer(2), 1);
  EXPECT_TRUE(uses.consumers(0).empty());
}

TEST(Uses, WhatASignatureReturnsIsAnOutput) {
  Model model = sample();
  Signature signature;
  signature.outputs.resize(1);
  signature.outputs[0].tensor = 4;
  model.signatures.push_back(signature);
  EXPECT_TRUE(Uses(model).is_output(4));
  EXPECT_FALSE(Uses(sample()).is_output(4));
}

TEST(Uses, NewTensorsHaveNoUses) {
  Uses uses(sample());
  uses.add_tensor();
  EXPECT_EQ(uses.producer(5), -1);
  EXPECT_TRUE(uses.consumers(5).empty());
  EXPECT_FALSE(uses.is_output(5));
}

}  // namespace
}  // namespace reef::ir

// SPDX-License-Identifier: Apache-2.0
#include "formats/darwinn/parameters/lstm_gates.h"

#include <gtest/gtest.h>

#include "ir/verify.h"

namespace reef::darwinn {
namespace {

// 24 operands; 2 cells, 3 inputs, 5 time steps. Weights of operand i are all i, biases of operand i all 100 + i.
ir::Model lstm_model() {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph graph;
  const auto add_tensor = [&](ir::DataType type, ir::Shape shape, std::vector<std::uint8_t> data) {
    ir::Tensor tensor;
    tensor.type = type;
    tensor.shape = std::move(shape);
    tensor.quantization.scale = {0.5f};
    tensor.quantization.zero_point = {0};
    if (!data.empty()) {
      tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
      model.buffers.push_back({Bytes(std::move(data))});
    }
    graph.tensors.push_back(std::move(tensor));
    return static_cast<std::int32_t>(graph.tensors.size()) - 1;
  };
  ir::Operator op;
  op.type = "UNIDIRECTIONAL_SEQUENCE_LSTM";
  op.inputs.assign(24, -1);
  op.inputs[0] = add_tensor(ir::DataType::kInt8, {1, 5, 3}, {});
  for (std::uint8_t i = 1; i <= 4; ++i)
    op.inputs[i] = add_tensor(ir::DataType::kInt8, {2, 3}, std::vector<std::uint8_t>(6, i));
  for (std::uint8_t i = 5; i <= 8; ++i)
    op.inputs[i] = add_tensor(ir::DataType::kInt8, {2, 2}, std::vector<std::uint8_t>(4, i));
  for (std::uint8_t i = 12; i <= 15; ++i) {
    const auto low = static_cast<std::uint8_t>(100 + i);
    op.inputs[i] = add_tensor(ir::DataType::kInt32, {2}, {low, 0, 0, 0, low, 0, 0, 0});
  }
  op.outputs = {add_tensor(ir::DataType::kInt8, {1, 5, 2}, {})};
  graph.inputs = {op.inputs[0]};
  graph.outputs = op.outputs;
  graph.operators.push_back(std::move(op));
  model.subgraphs.push_back(std::move(graph));
  return model;
}

Result<LstmParameters> parameters_of(const ir::Model& model) {
  return lstm_parameters_of(model, model.subgraphs[0], model.subgraphs[0].operators[0]);
}

TEST(LstmGates, TwoLayersPerGateInOrder) {
  const ir::Model model = lstm_model();
  ASSERT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
  const auto lstm = parameters_of(model);
  ASSERT_TRUE(lstm.ok()) << lstm.status().message();
  EXPECT_EQ(lstm->inputs, 3);
  EXPECT_EQ(lstm->cells, 2);
  EXPECT_EQ(lstm->time_steps, 5);
  ASSERT_EQ(lstm->gates.size(), 8u);
  for (std::size_t gate = 0; gate < 4; ++gate) {
    const LayerParameters& input = lstm->gates[2 * gate].layer;
    const LayerParameters& recurrent = lstm->gates[2 * gate + 1].layer;
    EXPECT_EQ(input.weights, std::vector<std::uint8_t>(6, static_cast<std::uint8_t>(129 + gate)));
    EXPECT_EQ(input.biases, std::vector<std::int32_t>(2, static_cast<std::int32_t>(112 + gate)));
    EXPECT_EQ(recurrent.weights, std::vector<std::uint8_t>(4, static_cast<std::uint8_t>(133 + gate)));
    EXPECT_TRUE(recurrent.biases.empty());
    EXPECT_TRUE(pack(input).ok());
    EXPECT_TRUE(pack(recurrent).ok());
  }
  EXPECT_EQ(lstm->gates[3].role, "forget gate, recurrent weights");
  EXPECT_EQ(lstm->initial_output_bytes, 10);
  ASSERT_EQ(lstm->before.size(), 3u);
  ASSERT_EQ(lstm->after.size(), 3u);
  EXPECT_EQ(lstm->before[0], SelectionMatrix::spread(3, true));
  EXPECT_EQ(lstm->after[1], SelectionMatrix::align(5, false));
}

TEST(LstmGates, OtherFormsAreRefused) {
  const struct {
    std::size_t operand;
    const char* message;
  } kForms[] = {{9, "peepholes"}, {16, "projection"}, {20, "layer normalization"}};
  for (const auto& form : kForms) {
    ir::Model model = lstm_model();
    model.subgraphs[0].operators[0].inputs[form.operand] = 1;
    const auto lstm = parameters_of(model);
    ASSERT_FALSE(lstm.ok());
    EXPECT_NE(lstm.status().message().find(form.message), std::string::npos) << lstm.status().message();
  }
  ir::Model coupled = lstm_model();
  coupled.subgraphs[0].operators[0].inputs[1] = -1;
  EXPECT_FALSE(parameters_of(coupled).ok());
  ir::Model floating = lstm_model();
  floating.subgraphs[0].tensors[0].type = ir::DataType::kFloat32;
  EXPECT_FALSE(parameters_of(floating).ok());
  ir::Model mismatched = lstm_model();
  mismatched.subgraphs[0].tensors[0].shape = {1, 5, 4};
  EXPECT_FALSE(parameters_of(mismatched).ok());
  ir::Model endless = lstm_model();
  endless.subgraphs[0].tensors[0].shape = {1, 1 << 28, 3};
  EXPECT_FALSE(parameters_of(endless).ok());
  ir::Model other = lstm_model();
  other.subgraphs[0].operators[0].type = "LSTM";
  EXPECT_FALSE(parameters_of(other).ok());
}

}  // namespace
}  // namespace reef::darwinn

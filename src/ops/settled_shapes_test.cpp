// SPDX-License-Identifier: Apache-2.0
#include "ops/settled_shapes.h"

#include <cstring>

#include <gtest/gtest.h>

#include "ir/verify.h"
#include "ops/inferred_shapes.h"

namespace reef::ops {
namespace {

using ir::DataType;

ir::Tensor tensor(const char* name, ir::Shape shape, DataType type = DataType::kFloat32) {
  ir::Tensor result;
  result.name = name;
  result.type = type;
  result.shape = std::move(shape);
  return result;
}

ir::Operator op(const char* type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs) {
  ir::Operator result;
  result.type = type;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  return result;
}

// x -> ABS -> y -> RELU -> z
ir::Model chain(ir::Shape x, ir::Shape y, ir::Shape z) {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  graph.tensors = {tensor("x", std::move(x)), tensor("y", std::move(y)), tensor("z", std::move(z))};
  graph.operators = {op("ABS", {0}, {1}), op("RELU", {1}, {2})};
  graph.inputs = {0};
  graph.outputs = {2};
  return model;
}

const ir::Shape& shape(const ir::Model& model, std::size_t tensor) { return model.subgraphs[0].tensors[tensor].shape; }

TEST(SettledShapes, AModelThatTellsTheTruthStaysAsItIs) {
  ir::Model model = chain({1, 4}, {1, 4}, {1, 4});
  const ir::Model before = model;
  const SettledShapes settled = settle_shapes(model);
  EXPECT_TRUE(settled.corrections.empty());
  EXPECT_TRUE(settled.refusal.ok());
  EXPECT_EQ(model, before);
}

TEST(SettledShapes, TheOperatorsShapesReplaceWhatTheFileDeclares) {
  ir::Model model = chain({2, 4}, {1, 4}, {7});
  EXPECT_FALSE(check_declared_shapes(model, 0, model.subgraphs[0].operators[0]).ok());
  const SettledShapes settled = settle_shapes(model);
  ASSERT_EQ(settled.corrections.size(), 2u);
  EXPECT_EQ(describe(model, settled.corrections[0]), "op 0 ABS gives 'y' shape [2, 4], the file declares [1, 4]");
  EXPECT_EQ(shape(model, 1), (ir::Shape{2, 4}));
  EXPECT_EQ(shape(model, 2), (ir::Shape{2, 4}));
  for (const ir::Operator& each : model.subgraphs[0].operators) {
    EXPECT_TRUE(check_declared_shapes(model, 0, each).ok());
  }
}

TEST(SettledShapes, SignaturesFollow) {
  ir::Model model = chain({2, 4}, {1, 4}, {7});
  model.subgraphs[0].tensors[1].shape_signature = {-1, 9};
  model.subgraphs[0].tensors[2].shape_signature = {7};
  EXPECT_TRUE(settle_shapes(model).refusal.ok());
  EXPECT_EQ(model.subgraphs[0].tensors[1].shape_signature, (std::vector<std::int32_t>{-1, 4}));
  EXPECT_TRUE(model.subgraphs[0].tensors[2].shape_signature.empty());
  EXPECT_TRUE(ir::verify(model).ok());
}

TEST(SettledShapes, BehindInputsWithoutSizesNothingIsClaimed) {
  ir::Model model = chain({1, 1, 1, 3}, {1, 224, 224, 3}, {1, 224, 224, 3});
  model.subgraphs[0].tensors[0].shape_signature = {1, -1, -1, 3};
  EXPECT_TRUE(settle_shapes(model).corrections.empty());
  EXPECT_EQ(shape(model, 1), (ir::Shape{1, 224, 224, 3}));
  // An open batch has the size that the file states for it.
  model.subgraphs[0].tensors[0].shape_signature = {-1, 1, 1, 3};
  EXPECT_EQ(settle_shapes(model).corrections.size(), 2u);
}

TEST(SettledShapes, ResultsOfUnknownOperatorsAreBelieved) {
  ir::Model model = chain({1, 4}, {1, 9}, {1, 4});
  model.subgraphs[0].operators[0].type = "SOMEBODYS_OP";
  model.subgraphs[0].operators[0].builtin_code = ir::kCustomBuiltinCode;
  const SettledShapes settled = settle_shapes(model);
  ASSERT_EQ(settled.corrections.size(), 1u);
  EXPECT_EQ(settled.corrections[0].tensor, 2);
  EXPECT_EQ(shape(model, 2), (ir::Shape{1, 9}));
}

// PACK computes the shape of a RESHAPE: nobody knows it before the model runs.
TEST(SettledShapes, ShapesThatDependOnValuesStayAsDeclared) {
  ir::Model model = chain({1, 4}, {2, 2}, {2, 2});
  ir::Subgraph& graph = model.subgraphs[0];
  graph.tensors.push_back(tensor("size", {2}, DataType::kInt32));
  graph.inputs.push_back(3);
  graph.operators[0] = op("RESHAPE", {0, 3}, {1});
  EXPECT_TRUE(settle_shapes(model).corrections.empty());
  EXPECT_EQ(check_declared_shapes(model, 0, graph.operators[0]).code(), StatusCode::kDeferred);
  EXPECT_EQ(shape(model, 2), (ir::Shape{2, 2}));
}

TEST(SettledShapes, AConstantMayLieAnywhereInAFile) {
  ir::Model model = chain({1, 4}, {4, 1}, {1});
  ir::Subgraph& graph = model.subgraphs[0];
  graph.tensors.push_back(tensor("size", {2}, DataType::kInt32));
  graph.operators[0] = op("RESHAPE", {0, 3}, {1});
  const std::int32_t sizes[] = {2, 2};
  for (std::size_t offset = 0; offset < 8; ++offset) {
    std::vector<std::uint8_t> file(offset + sizeof(sizes));
    std::memcpy(file.data() + offset, sizes, sizeof(sizes));
    model.buffers.resize(1);
    model.buffers.push_back({.data = Bytes(std::move(file)).slice(offset, sizeof(sizes))});
    graph.tensors[3].buffer = 1;
    graph.tensors[1].shape = {4, 1};
    EXPECT_EQ(settle_shapes(model).corrections.size(), 2u);
    EXPECT_EQ(shape(model, 2), (ir::Shape{2, 2}));
    graph.tensors[2].shape = {1};
  }
}

TEST(SettledShapes, AnOperatorThatRefusesItsOperandsIsNamed) {
  ir::Model model = chain({1, 4}, {1, 4}, {1, 4});
  ir::Subgraph& graph = model.subgraphs[0];
  graph.tensors.push_back(tensor("other", {3, 3}));
  graph.inputs.push_back(3);
  graph.operators[1] = op("ADD", {1, 3}, {2});
  const SettledShapes settled = settle_shapes(model);
  EXPECT_EQ(settled.refusal.code(), StatusCode::kInvalidInput);
  EXPECT_NE(settled.refusal.message().find("op 1 ADD ('z')"), std::string::npos) << settled.refusal.message();
}

TEST(SettledShapes, ScalesMustFitTheSizeThatADimensionReallyHas) {
  ir::Model model = chain({1, 4}, {1, 3}, {1, 4});
  ir::Tensor& wrong = model.subgraphs[0].tensors[1];
  wrong.quantization.scale = {1, 2, 3};
  wrong.quantization.zero_point = {0, 0, 0};
  wrong.quantization.dimension = 1;
  ASSERT_TRUE(ir::verify(model).ok());
  EXPECT_FALSE(settle_shapes(model).refusal.ok());
}

TEST(SettledShapes, AVariableKeepsItsSize) {
  ir::Model model = chain({1, 4}, {1, 3}, {1, 4});
  model.subgraphs[0].tensors[1].is_variable = true;
  EXPECT_FALSE(settle_shapes(model).refusal.ok());
}

// Quantizing converters declare uint8; the kernels set float32 where they are prepared, and so does TFLite's own.
TEST(SettledShapes, DecodersGiveFloatsWhateverTheFileDeclares) {
  for (const char* type : {"TFLite_Detection_PostProcess", "PosenetDecoderOp"}) {
    ir::Model model = chain({1, 4}, {1, 4}, {});
    ir::Subgraph& graph = model.subgraphs[0];
    graph.operators[1] = op(type, {1}, {2});
    graph.tensors[2].type = DataType::kUInt8;
    graph.tensors[2].quantization.scale = {0.5f};
    graph.tensors[2].quantization.zero_point = {3};
    settle_shapes(model);
    EXPECT_EQ(graph.tensors[2].type, DataType::kFloat32) << type;
    EXPECT_TRUE(graph.tensors[2].quantization.scale.empty()) << type;
  }
  ir::Model model = chain({1, 4}, {1, 4}, {});
  model.subgraphs[0].operators[1] = op("AnotherDecoder", {1}, {2});
  model.subgraphs[0].tensors[2].type = DataType::kUInt8;
  settle_shapes(model);
  EXPECT_EQ(model.subgraphs[0].tensors[2].type, DataType::kUInt8);
}

}  // namespace
}  // namespace reef::ops

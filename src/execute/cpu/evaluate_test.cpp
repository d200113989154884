// SPDX-License-Identifier: Apache-2.0
// The evaluator: whose rules it follows, and what ends it.
#include "execute/cpu/evaluate.h"

#include <cstring>

#include <gtest/gtest.h>

#include "dense_per_channel.h"
#include "ir/excerpt.h"
#include "ir/verify.h"
#include "small_models.h"

namespace reef::cpu {
namespace {

using testing::op;
using testing::tensor;

template <typename T>
std::vector<std::uint8_t> bytes_of(std::vector<T> values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// y = FILL(dims, 1): as large as `dims` says.
ir::Model fill(std::vector<std::int32_t> dims) {
  ir::Model model;
  model.buffers.resize(3);
  model.buffers[1].data = Bytes(bytes_of(dims));
  model.buffers[2].data = Bytes(bytes_of<float>({1}));
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kInt32, {static_cast<std::int32_t>(dims.size())}),
                   tensor(ir::DataType::kFloat32, {}), tensor(ir::DataType::kFloat32, ir::Shape(dims))};
  graph.tensors[0].buffer = 1;
  graph.tensors[1].buffer = 2;
  graph.outputs = {2};
  graph.operators = {op("FILL", {0, 1}, {2})};
  model.subgraphs.push_back(std::move(graph));
  return model;
}

// x runs around a loop whose condition is always true.
ir::Model endless() {
  ir::Model model;
  model.buffers.resize(2);
  model.buffers[1].data = Bytes(bytes_of<std::uint8_t>({1}));
  ir::Subgraph main, condition, body;
  main.tensors = {tensor(ir::DataType::kFloat32, {4}), tensor(ir::DataType::kFloat32, {4})};
  main.inputs = {0};
  main.outputs = {1};
  main.operators = {op("WHILE", {0}, {1})};
  main.operators[0].attributes.set("cond_subgraph_index", std::int64_t{1});
  main.operators[0].attributes.set("body_subgraph_index", std::int64_t{2});
  condition.tensors = {tensor(ir::DataType::kFloat32, {4}), tensor(ir::DataType::kBool, {1}),
                       tensor(ir::DataType::kBool, {1})};
  condition.tensors[1].buffer = 1;
  condition.inputs = {0};
  condition.outputs = {2};
  condition.operators = {op("LOGICAL_OR", {1, 1}, {2})};
  body.tensors = {tensor(ir::DataType::kFloat32, {4}), tensor(ir::DataType::kFloat32, {4})};
  body.inputs = {0};
  body.outputs = {1};
  body.operators = {op("NEG", {0}, {1})};
  model.subgraphs = {main, condition, body};
  return model;
}

TEST(Evaluate, ComputesAsTheCurrentRelease) {
  EXPECT_EQ(InterpreterOptions().tflite_release, ops::TfliteRelease::kCurrent);
  const ir::Model model = testing::dense_per_channel();
  const auto& graph = model.subgraphs[0];
  const std::vector<ir::Operator> layer(graph.operators.begin(), graph.operators.begin() + 2);
  const std::int32_t wanted = 5;
  const auto values = Evaluator()(ir::excerpt(model, layer, {&wanted, 1}));
  ASSERT_TRUE(values.ok()) << values.status().message();
  EXPECT_EQ(values->at(0).bytes, bytes_of(testing::kDensePerChannelOutputs));
  EXPECT_EQ(values->at(0).shape, ir::Shape({1, 2}));
}

TEST(Evaluate, MemoryIsBounded) {
  EXPECT_TRUE(Evaluator({.memory_bytes = 1 << 20})(fill({64, 1024})).ok());
  EXPECT_EQ(Evaluator({.memory_bytes = 1 << 20})(fill({1024, 1024})).status().code(), StatusCode::kResourceExhausted);
}

// Counted, so that the same model gives the same answer on a slow machine and under the sanitizers.
TEST(Evaluate, WorkOfAllEvaluationsTogetherIsBounded) {
  Evaluator evaluate({.work = 1e6});
  int done = 0;
  while (done < 100 && evaluate(fill({100'000})).ok()) ++done;
  EXPECT_EQ(done, 9);  // 100,000 elements, 100 for the call, 10,000 to prepare it, and then 8,910 are left
  EXPECT_EQ(evaluate(fill({1})).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(Evaluator()(fill({100'000})).ok()) << "another evaluator has a bound of its own";
}

TEST(Evaluate, ALoopWithoutEndEnds) {
  const ir::Model model = endless();
  ASSERT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
  const std::vector<std::uint8_t> x(16);
  const auto values = Evaluator({.work = 1e6})(model, {&x, 1});
  EXPECT_EQ(values.status().code(), StatusCode::kResourceExhausted) << values.status().message();
}

TEST(Evaluate, InputsMustBeThoseOfTheModel) {
  const std::vector<std::uint8_t> wrong(3);
  EXPECT_FALSE(Evaluator()(endless()).ok());
  EXPECT_FALSE(Evaluator()(endless(), {&wrong, 1}).ok());
}

}  // namespace
}  // namespace reef::cpu

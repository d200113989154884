// SPDX-License-Identifier: Apache-2.0
// Models that are well formed for a reader and made to break a runtime. Each once crashed or hung ours.
#include <memory>

#include <gtest/gtest.h>

#include "execute/cpu/interpreter.h"
#include "ir/verify.h"
#include "small_models.h"

namespace reef::testing {
namespace {

ir::Model model_of(ir::Subgraph graph) {
  ir::Model model;
  model.buffers.resize(1);
  model.subgraphs.push_back(std::move(graph));
  return model;
}

// Verify, create, prepare, invoke: as far as it goes.
Status run(ir::Model model) {
  REEF_RETURN_IF_ERROR(ir::verify(model));
  cpu::InterpreterOptions options;
  options.time_limit_seconds = 5;
  options.max_memory_bytes = 1 << 28;
  REEF_ASSIGN_OR_RETURN(auto interpreter,
                        cpu::Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options));
  REEF_RETURN_IF_ERROR(interpreter->prepare());
  return interpreter->invoke();
}

TEST(HostileModels, AVariableInputCannotBeResized) {
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kFloat32, {4}), tensor(ir::DataType::kFloat32, {4})};
  graph.tensors[0].is_variable = true;
  graph.inputs = {0};
  graph.outputs = {1};
  graph.operators = {op("ABS", {0}, {1})};
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(model_of(graph)));
  ASSERT_TRUE(interpreter.ok());
  EXPECT_FALSE((*interpreter)->resize_input(0, {40000000}).ok());
}

TEST(HostileModels, AnOpCannotWriteWhatItReads) {
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kFloat32, {4})};
  graph.tensors[0].is_variable = true;
  graph.outputs = {0};
  graph.operators = {op("ABS", {0}, {0})};
  const Status status = run(model_of(graph));
  EXPECT_NE(status.message().find("both an input and an output"), std::string::npos) << status.message();
}

TEST(HostileModels, EmptyTensorsWithEndlessOtherDimensionsAreRefused) {
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kFloat32, {INT32_MAX, INT32_MAX, 0}),
                   tensor(ir::DataType::kFloat32, {INT32_MAX, INT32_MAX, 0})};
  graph.inputs = {0};
  graph.outputs = {1};
  graph.operators = {op("SOFTMAX", {0}, {1})};
  EXPECT_FALSE(run(model_of(graph)).ok());
}

TEST(HostileModels, SubgraphsCannotNestWithoutEnd) {
  ir::Model model;
  model.buffers.resize(1);
  constexpr int kSubgraphs = 30000;
  for (int i = 0; i < kSubgraphs; ++i) {
    ir::Subgraph graph;
    if (i + 1 < kSubgraphs) {
      graph.operators = {op("CALL_ONCE", {}, {})};
      graph.operators[0].attributes.set("init_subgraph_index", std::int64_t{i + 1});
    }
    model.subgraphs.push_back(std::move(graph));
  }
  const Status status = run(std::move(model));
  EXPECT_NE(status.message().find("deep"), std::string::npos) << status.message();
}

TEST(HostileModels, ASubgraphCannotCallItself) {
  ir::Model model;
  model.buffers.resize(1);
  for (int i = 0; i < 2; ++i) {
    ir::Subgraph graph;
    graph.operators = {op("CALL_ONCE", {}, {}), op("CALL_ONCE", {}, {})};
    for (ir::Operator& call : graph.operators) call.attributes.set("init_subgraph_index", std::int64_t{1});
    model.subgraphs.push_back(std::move(graph));
  }
  // The first call of CALL_ONCE is in progress when the second is reached, so it is skipped; IF and WHILE are refused.
  EXPECT_TRUE(run(std::move(model)).ok());
}

TEST(HostileModels, AbsurdTimeLimitsMeanNoLimit) {
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kFloat32, {4}), tensor(ir::DataType::kFloat32, {4})};
  graph.inputs = {0};
  graph.outputs = {1};
  graph.operators = {op("ABS", {0}, {1})};
  cpu::InterpreterOptions options;
  options.time_limit_seconds = 1e300;
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(model_of(graph)), options);
  ASSERT_TRUE(interpreter.ok());
  EXPECT_TRUE((*interpreter)->prepare().ok());
  EXPECT_TRUE((*interpreter)->invoke().ok());
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// Tests of what the interpreter does beyond calling kernels: shapes known early or late, resizing, notes.
#include "execute/cpu/interpreter.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "ir/verify.h"
#include "kernels/simd/targets.h"
#include "small_models.h"

namespace reef::cpu {
namespace {

using testing::op;
using testing::tensor;

// y = RESHAPE(x, SHAPE(like)): the new shape is computed, but from a shape.
ir::Model reshape_like() {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kFloat32, {2, 3}), tensor(ir::DataType::kInt8, {3, 2}),
                   tensor(ir::DataType::kInt32, {2}), tensor(ir::DataType::kFloat32, {3, 2})};
  graph.inputs = {0, 1};
  graph.outputs = {3};
  graph.operators = {op("SHAPE", {1}, {2}), op("RESHAPE", {0, 2}, {3})};
  model.subgraphs.push_back(std::move(graph));
  return model;
}

std::unique_ptr<Interpreter> created(ir::Model model) {
  EXPECT_TRUE(ir::verify(model).ok());
  auto interpreter = Interpreter::create(std::make_shared<const ir::Model>(std::move(model)));
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
  return std::move(*interpreter);
}

TEST(Interpreter, ShapesComputedFromShapesAreKnownBeforeRunning) {
  const auto interpreter = created(reshape_like());
  ASSERT_TRUE(interpreter->prepare().ok());
  // Memory for the output is planned: its shape did not wait for a run.
  EXPECT_EQ(interpreter->output(0).shape, ir::Shape({3, 2}));
  EXPECT_NE(interpreter->output(0).data, nullptr);
  ASSERT_TRUE(interpreter->invoke().ok());
}

TEST(Interpreter, ResizedInputsChangeWhatFollowsFromThem) {
  const auto interpreter = created(reshape_like());
  ASSERT_TRUE(interpreter->resize_input(1, {1, 6}).ok());
  EXPECT_FALSE(interpreter->invoke().ok()) << "prepare comes first";
  ASSERT_TRUE(interpreter->prepare().ok());
  for (std::size_t i = 0; i < 6; ++i) {
    const auto value = static_cast<float>(i);
    std::memcpy(interpreter->input_bytes(0).data() + 4 * i, &value, 4);
  }
  ASSERT_TRUE(interpreter->invoke().ok());
  EXPECT_EQ(interpreter->output(0).shape, ir::Shape({1, 6}));
  EXPECT_EQ(interpreter->output(0).values<float>()[5], 5.0f);
  ASSERT_TRUE(interpreter->resize_input(1, {4, 4}).ok());
  const Status status = interpreter->prepare();
  EXPECT_NE(status.message().find("op 1 RESHAPE"), std::string::npos) << status.message();
}

TEST(Interpreter, ShapesThatRestOnValuesWaitForThem) {
  ir::Model model = reshape_like();
  model.subgraphs[0].inputs = {0, 2};
  model.subgraphs[0].operators.erase(model.subgraphs[0].operators.begin());
  const auto interpreter = created(std::move(model));
  ASSERT_TRUE(interpreter->prepare().ok());
  for (const std::int32_t rows : {6, 2, 3}) {
    const std::int32_t shape[] = {rows, 6 / rows};
    std::memcpy(interpreter->input_bytes(1).data(), shape, sizeof(shape));
    ASSERT_TRUE(interpreter->invoke().ok());
    EXPECT_EQ(interpreter->output(0).shape, ir::Shape({rows, 6 / rows}));
  }
}

TEST(Interpreter, UnknownOpsAreNamedTogether) {
  ir::Model model = reshape_like();
  for (ir::Operator& each : model.subgraphs[0].operators) each.type = "FROBNICATE";
  const auto interpreter = Interpreter::create(std::make_shared<const ir::Model>(std::move(model)));
  EXPECT_NE(interpreter.status().message().find("FROBNICATE (ops 0, 1)"), std::string::npos)
      << interpreter.status().message();
}

TEST(Interpreter, AnObserverSeesEveryOpAndMayChangeWhatItMade) {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph graph;
  graph.tensors = {tensor(ir::DataType::kFloat32, {2}), tensor(ir::DataType::kFloat32, {2}),
                   tensor(ir::DataType::kFloat32, {2})};
  graph.inputs = {0};
  graph.outputs = {2};
  graph.operators = {op("NEG", {0}, {1}), op("ABS", {1}, {2})};
  model.subgraphs.push_back(std::move(graph));
  ASSERT_TRUE(ir::verify(model).ok());

  std::vector<std::int32_t> seen;
  InterpreterOptions options;
  options.after_op = [&](const OpRun& run) {
    seen.push_back(run.op_index);
    if (run.op->type == "NEG") run.outputs[0]->mutable_values<float>()[1] = -7;
    return ok_status();
  };
  auto interpreter = Interpreter::create(std::make_shared<const ir::Model>(std::move(model)), options);
  ASSERT_TRUE(interpreter.ok());
  ASSERT_TRUE((*interpreter)->prepare().ok());
  const float in[] = {3, 4};
  std::memcpy((*interpreter)->input_bytes(0).data(), in, sizeof in);
  ASSERT_TRUE((*interpreter)->invoke().ok());
  EXPECT_EQ(seen, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ((*interpreter)->output(0).values<float>()[0], 3);
  EXPECT_EQ((*interpreter)->output(0).values<float>()[1], 7);
}

// Scores of the shipped network for one picture of noise.
std::vector<float> scores(ops::FloatSums sums, int threads) {
  auto model = tflite::load_model(REEF_SOURCE_DIR "/models/reef_creatures_float.tflite");
  EXPECT_TRUE(model.ok()) << model.status().message();
  InterpreterOptions options;
  options.float_sums = sums;
  options.threads = threads;
  auto interpreter = Interpreter::create(std::make_shared<const ir::Model>(std::move(*model)), options);
  EXPECT_TRUE(interpreter.ok() && (*interpreter)->prepare().ok());
  std::mt19937 random(1);
  const std::span<std::byte> input = (*interpreter)->input_bytes(0);
  for (std::size_t i = 0; i < input.size(); i += sizeof(float)) {
    const float value = static_cast<float>(random() % 256) / 255;
    std::memcpy(input.data() + i, &value, sizeof value);
  }
  EXPECT_TRUE((*interpreter)->invoke().ok());
  const std::span<const float> result = (*interpreter)->output(0).values<float>();
  return {result.begin(), result.end()};
}

TEST(Interpreter, FusedSumsAreNearAndTheSameForAnyNumberOfThreads) {
  const std::vector<float> rounded = scores(ops::FloatSums::kAsTflite, 1), fused = scores(ops::FloatSums::kFused, 1);
  EXPECT_EQ(fused, scores(ops::FloatSums::kFused, 3));
  ASSERT_EQ(fused.size(), rounded.size());
  for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], rounded[i], 1e-5) << i;
#if defined(__aarch64__)
  EXPECT_NE(fused, rounded);
#elif defined(__x86_64__)
  EXPECT_EQ(fused != rounded, kernels::active_includes(kernels::SimdTarget::kAvx2));
#endif
}

}  // namespace
}  // namespace reef::cpu

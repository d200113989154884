// SPDX-License-Identifier: Apache-2.0
// Refusals and their reasons, on models built by hand. What real TFLite Micro does with recorded models is compared in
// tests/micro_verdicts_test.cpp.
#include "micro/assess.h"

#include <gtest/gtest.h>

#include "ir/verify.h"

namespace reef::micro {
namespace {

using ir::DataType;

class HandMade {
 public:
  HandMade() {
    model.buffers.emplace_back();
    model.subgraphs.emplace_back();
  }
  std::int32_t tensor(DataType type, const ir::Shape& shape, float scale = 0.5F) {
    ir::Tensor tensor;
    tensor.name = "t" + std::to_string(graph().tensors.size());
    tensor.type = type;
    tensor.shape = shape;
    if (type == DataType::kInt8) {
      tensor.quantization.scale = {scale};
      tensor.quantization.zero_point = {0};
      tensor.has_quantization = true;
    }
    graph().tensors.push_back(tensor);
    return static_cast<std::int32_t>(graph().tensors.size()) - 1;
  }
  void op(const std::string& type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
          std::int32_t code = ir::kCustomBuiltinCode) {
    ir::Operator op;
    op.type = type;
    op.builtin_code = code;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    graph().operators.push_back(op);
  }
  ir::Subgraph& graph() { return model.subgraphs[0]; }
  Assessment assessed(Target target) const {
    EXPECT_TRUE(ir::verify(model).ok());
    return assess(model, {.target = target, .file_bytes = 1000});
  }
  ir::Model model;
};

bool has_rule(const Assessment& assessment, std::string_view rule) {
  for (const Refusal& refusal : assessment.refusals) {
    if (refusal.rule == rule) return true;
  }
  return false;
}

TEST(MicroAssess, AnOperatorThatNobodyRegistersIsNamedWithARemedy) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kFloat32, {1, 4}), y = made.tensor(DataType::kFloat32, {1, 4});
  made.op("SomeDelegateOp", {x}, {y});
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  for (const Target target : {Target::kMicro, Target::kTflm}) {
    const Assessment assessment = made.assessed(target);
    ASSERT_FALSE(assessment.is_accepted());
    EXPECT_EQ(assessment.refusals[0].rule, "operator");
    EXPECT_NE(assessment.refusals[0].reason.find("SomeDelegateOp"), std::string::npos);
    EXPECT_NE(assessment.refusals[0].remedy.find("AddCustom"), std::string::npos);
  }
}

TEST(MicroAssess, AnArenaOverTheBoardsMemoryIsRefusedWithTheNumbers) {
  HandMade made;
  constexpr std::int32_t kSide = 4096;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, kSide, kSide, 3}),
                     y = made.tensor(DataType::kInt8, {1, kSide, kSide, 3});
  made.op("RELU", {x}, {y}, 19);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  const Assessment assessment = made.assessed(Target::kMicro);
  ASSERT_TRUE(has_rule(assessment, "memory"));
  const std::int64_t bytes = assessment.arena_bytes().value_or(0);
  EXPECT_GT(bytes, 2 * kSide * kSide * 3);
  EXPECT_LT(bytes, 2 * kSide * kSide * 3 + 4096);
  EXPECT_NE(assessment.refusals[0].reason.find(std::to_string(bytes)), std::string::npos)
      << assessment.refusals[0].reason;
  EXPECT_NE(assessment.refusals[0].reason.find("32.0 MiB"), std::string::npos);
  // A board that says nothing of its memory takes it.
  EXPECT_TRUE(made.assessed(Target::kTflm).is_accepted());
}

TEST(MicroAssess, StringsAndOpenShapesAreRefused) {
  HandMade strings;
  const std::int32_t x = strings.tensor(DataType::kString, {4}), y = strings.tensor(DataType::kInt8, {4});
  strings.op("SomeHash", {x}, {y});
  strings.graph().inputs = {x};
  strings.graph().outputs = {y};
  EXPECT_TRUE(has_rule(strings.assessed(Target::kTflm), "tensor-type"));
}

// What Coral's driver would do wrongly without a word.
TEST(MicroAssess, EdgeTpuOperatorsThatCoralsSdkFeedsWrongly) {
  HandMade two;
  const std::int32_t a = two.tensor(DataType::kUInt8, {1, 4}), b = two.tensor(DataType::kUInt8, {1, 4});
  const std::int32_t y = two.tensor(DataType::kUInt8, {1, 4});
  two.op("edgetpu-custom-op", {a, b}, {y});
  two.graph().inputs = {a, b};
  two.graph().outputs = {y};
  EXPECT_TRUE(has_rule(two.assessed(Target::kMicro), "edge-tpu-inputs"));

  HandMade again;
  const std::int32_t x = again.tensor(DataType::kInt8, {1, 4}), z = again.tensor(DataType::kInt8, {1, 4});
  const std::int32_t sum = again.tensor(DataType::kInt8, {1, 4});
  again.op("edgetpu-custom-op", {x}, {z});
  again.op("ADD", {x, z}, {sum}, 0);
  again.graph().inputs = {x};
  again.graph().outputs = {sum};
  EXPECT_TRUE(has_rule(again.assessed(Target::kMicro), "edge-tpu-input-read-again"));
  // Without an Edge TPU there is nobody to register it.
  EXPECT_TRUE(has_rule(again.assessed(Target::kTflm), "operator"));
}

TEST(MicroAssess, OtherNumbersAreRefused) {
  HandMade made;
  const std::int32_t x = made.tensor(DataType::kInt8, {1, 4}, 0.5F), y = made.tensor(DataType::kInt8, {1, 4}, 0.25F);
  made.op("RELU6", {x}, {y}, 21);
  made.graph().inputs = {x};
  made.graph().outputs = {y};
  EXPECT_TRUE(has_rule(made.assessed(Target::kTflm), "relu6-scales"));
  made.graph().tensors[static_cast<std::size_t>(y)].quantization.scale = {0.5F};
  EXPECT_TRUE(made.assessed(Target::kTflm).is_accepted());
}

}  // namespace
}  // namespace reef::micro

// SPDX-License-Identifier: Apache-2.0
// Element-wise ops where recorded vectors do not reach: tensors of several chunks, models that must be refused, bytes
// that no honest file holds.
#include "ops/elementwise.h"

#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include <gtest/gtest.h>

#include "ops/op_def.h"
#include "ops/registry.h"

namespace reef::ops {
namespace {

class TestEnvironment : public Environment {
 public:
  ThreadPool& threads() override { return threads_; }
  TfliteRelease tflite_release() const override { return TfliteRelease::k2_9; }
  FloatSums float_sums() const override { return FloatSums::kAsTflite; }
  std::int32_t variable_handle(std::string_view, std::string_view) override { return 0; }
  std::map<std::int32_t, OwnedTensor>& variables() override { return variables_; }
  Status run_subgraph(std::int32_t, std::span<const Tensor* const>, std::vector<OwnedTensor>&) override {
    return internal_error("no subgraphs here");
  }
  Result<std::vector<Shape>> infer_subgraph(std::int32_t, std::span<const Tensor* const>) override {
    return internal_error("no subgraphs here");
  }
  std::int32_t subgraph_count() const override { return 0; }
  bool first_use_of(std::int32_t) override { return false; }
  Status resize_output(Tensor&, const Shape&) override { return internal_error("no resizing here"); }

 private:
  ThreadPool threads_{3};
  std::map<std::int32_t, OwnedTensor> variables_;
};

// A tensor with its memory and quantization.
struct Operand {
  Tensor tensor;
  std::vector<std::uint64_t> memory;  // of words, for alignment
  ir::Quantization quantization;
};

std::unique_ptr<Operand> operand(DataType type, Shape shape, std::vector<float> scale = {},
                                 std::int64_t zero_point = 0) {
  auto result = std::make_unique<Operand>();
  result->quantization.scale = std::move(scale);
  if (!result->quantization.scale.empty()) result->quantization.zero_point = {zero_point};
  result->tensor.name = "t";
  result->tensor.type = type;
  result->tensor.shape = std::move(shape);
  result->tensor.quantization = &result->quantization;
  return result;
}

void allocate(Operand& operand) {
  operand.tensor.bytes = static_cast<std::size_t>(ir::byte_size(operand.tensor.shape, operand.tensor.type).value_or(0));
  operand.memory.assign(operand.tensor.bytes / 8 + 1, 0);
  operand.tensor.data = reinterpret_cast<std::byte*>(operand.memory.data());
}

template <typename T>
std::unique_ptr<Operand> filled(Shape shape, const std::vector<T>& values, DataType type = ir::data_type_of<T>) {
  auto result = operand(type, std::move(shape));
  allocate(*result);
  std::memcpy(result->tensor.data, values.data(), std::min(result->tensor.bytes, values.size() * sizeof(T)));
  return result;
}

// infer, prepare and run of one op, as an interpreter does it. A null input is one left out.
Status run_op(std::string_view name, const std::vector<Operand*>& inputs, Operand& output,
              const ir::Attributes& attributes = {}) {
  ir::Operator op;
  op.type = name;
  op.attributes = attributes;
  const OpDef* def = find_op(op);
  if (def == nullptr) return internal_error("no op {}", name);
  std::vector<Tensor*> input_tensors;
  for (Operand* input : inputs) {
    if (input && input->tensor.data == nullptr) allocate(*input);
    input_tensors.push_back(input ? &input->tensor : nullptr);
  }
  std::vector<Tensor*> output_tensors = {&output.tensor};
  TestEnvironment environment;
  InferContext infer(op, input_tensors, output_tensors, &environment);
  REEF_RETURN_IF_ERROR(def->infer(infer));
  PrepareContext prepare(op, input_tensors, output_tensors, &environment);
  REEF_ASSIGN_OR_RETURN(const Kernel kernel, def->prepare(prepare));
  allocate(output);
  RunContext run(op, input_tensors, output_tensors, &environment, {});
  return kernel(run);
}

template <typename T>
std::vector<T> values_of(const Operand& operand) {
  const auto values = operand.tensor.values<T>();
  return {values.begin(), values.end()};
}

ir::Attributes activation(std::string name) {
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{std::move(name)});
  return attributes;
}

TEST(Elementwise, SeveralChunksOnSeveralThreads) {
  constexpr std::int32_t kRows = 1000, kColumns = 333;
  std::vector<std::int32_t> a(kRows * kColumns), b(kColumns);
  std::iota(a.begin(), a.end(), 0);
  std::iota(b.begin(), b.end(), 7);
  const auto x = filled<std::int32_t>({kRows, kColumns}, a), y = filled<std::int32_t>({kColumns}, b);
  const auto out = operand(DataType::kInt32, {});
  ASSERT_TRUE(run_op("SUB", {x.get(), y.get()}, *out).ok());
  const auto result = out->tensor.values<std::int32_t>();
  ASSERT_EQ(result.size(), a.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(result[i], a[i] - b[i % kColumns]) << i;
}

TEST(Elementwise, AnyByteButZeroIsTrue) {
  const auto a = filled<std::uint8_t>({4}, {0, 2, 255, 0}, DataType::kBool);
  const auto b = filled<std::uint8_t>({4}, {0, 4, 1, 7}, DataType::kBool);
  const auto out = operand(DataType::kBool, {});
  ASSERT_TRUE(run_op("LOGICAL_AND", {a.get(), b.get()}, *out).ok());
  EXPECT_EQ(values_of<std::uint8_t>(*out), (std::vector<std::uint8_t>{0, 1, 1, 0}));
  ASSERT_TRUE(run_op("EQUAL", {a.get(), b.get()}, *out).ok());
  EXPECT_EQ(values_of<std::uint8_t>(*out), (std::vector<std::uint8_t>{1, 1, 1, 0}));
  ASSERT_TRUE(run_op("LOGICAL_NOT", {a.get()}, *out).ok());
  EXPECT_EQ(values_of<std::uint8_t>(*out), (std::vector<std::uint8_t>{1, 0, 0, 1}));
}

TEST(Elementwise, WhereOfNothingHasNoRows) {
  const auto condition = filled<std::uint8_t>({2, 3}, std::vector<std::uint8_t>(6, 0), DataType::kBool);
  const auto out = operand(DataType::kInt64, {});
  ASSERT_TRUE(run_op("WHERE", {condition.get()}, *out).ok());
  EXPECT_EQ(out->tensor.shape, (Shape{0, 2}));
}

TEST(Elementwise, RemainderOfTheLowestNumberByMinusOne) {
  const auto a = filled<std::int64_t>({2}, {INT64_MIN, 5}), b = filled<std::int64_t>({2}, {-1, -1});
  const auto out = operand(DataType::kInt64, {});
  ASSERT_TRUE(run_op("FLOOR_MOD", {a.get(), b.get()}, *out).ok());
  EXPECT_EQ(values_of<std::int64_t>(*out), (std::vector<std::int64_t>{0, 0}));
}

TEST(Elementwise, MissingInputsAreRefused) {
  const auto x = operand(DataType::kFloat32, {2}), out = operand(DataType::kFloat32, {2});
  for (const char* name : {"ADD", "SUB", "MUL", "DIV", "POW", "MAXIMUM", "EQUAL", "PRELU", "ADD_N", "ATAN2"}) {
    EXPECT_FALSE(run_op(name, {x.get(), nullptr}, *out).ok()) << name;
    EXPECT_FALSE(run_op(name, {nullptr, x.get()}, *out).ok()) << name;
  }
  EXPECT_FALSE(run_op("SELECT_V2", {x.get(), nullptr, x.get()}, *out).ok());
  EXPECT_FALSE(run_op("WHERE", {nullptr}, *out).ok());
}

TEST(Elementwise, BadQuantizationIsRefused) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto good = operand(DataType::kInt8, {2}, {0.5f});
  for (const char* name : {"ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", "PRELU", "LESS", "EQUAL"}) {
    const bool compares = std::string_view(name) == "LESS" || std::string_view(name) == "EQUAL";
    const auto out = operand(compares ? DataType::kBool : DataType::kInt8, {2}, {0.5f});
    for (const std::vector<float>& scale :
         {std::vector<float>{}, {0.0f}, {-1.0f}, {std::nanf("")}, {infinity}, {0.5f, 0.5f}}) {
      const auto bad = operand(DataType::kInt8, {2}, scale);
      EXPECT_FALSE(run_op(name, {good.get(), bad.get()}, *out).ok()) << name;
      EXPECT_FALSE(run_op(name, {bad.get(), good.get()}, *out).ok()) << name;
    }
    const auto bad = operand(DataType::kInt8, {2}, {0.5f}, 1000);
    EXPECT_FALSE(run_op(name, {good.get(), bad.get()}, *out).ok()) << name;
  }
}

TEST(Elementwise, WhatTheReferenceCannotComputeIsRefused) {
  const auto x = operand(DataType::kInt8, {2}, {1.0f}), fine = operand(DataType::kInt8, {2}, {1e-7f});
  EXPECT_FALSE(run_op("ADD", {x.get(), x.get()}, *fine).ok());
  const auto boolean = operand(DataType::kBool, {2});
  EXPECT_FALSE(run_op("LESS", {x.get(), x.get()}, *boolean).ok());
  const auto wide = operand(DataType::kInt16, {2}, {0.25f}), other = operand(DataType::kInt16, {1}, {0.25f});
  EXPECT_FALSE(run_op("MUL", {wide.get(), other.get()}, *x).ok());
}

TEST(Elementwise, WrongTypesAndActivationsAreRefused) {
  const auto floats = operand(DataType::kFloat32, {2}), halves = operand(DataType::kFloat16, {2});
  const auto ints = operand(DataType::kInt32, {2}), unsigneds = operand(DataType::kUInt32, {2});
  EXPECT_FALSE(run_op("SUB", {halves.get(), halves.get()}, *halves).ok());
  EXPECT_FALSE(run_op("ADD", {floats.get(), ints.get()}, *floats).ok());
  EXPECT_FALSE(run_op("ADD", {floats.get(), floats.get()}, *ints).ok());
  EXPECT_FALSE(run_op("LESS", {ints.get(), ints.get()}, *ints).ok());
  EXPECT_FALSE(run_op("ADD", {floats.get(), floats.get()}, *floats, activation("TANH")).ok());
  EXPECT_FALSE(run_op("MUL", {unsigneds.get(), unsigneds.get()}, *unsigneds, activation("RELU_N1_TO_1")).ok());
  EXPECT_TRUE(run_op("ADD", {floats.get(), floats.get()}, *floats, activation("RELU")).ok());
}

TEST(Elementwise, HostileStringsAreRefused) {
  const auto out = operand(DataType::kBool, {});
  for (const std::vector<std::int32_t>& words : {std::vector<std::int32_t>{},
                                                 {2},
                                                 {1, 12, -1},
                                                 {1, 12, 13},
                                                 {1, 13, 12},
                                                 {-1, 12, 12},
                                                 {1, INT32_MIN, 12},
                                                 {1000000, 0, 0}}) {
    const auto a = operand(DataType::kString, {1}), good = operand(DataType::kString, {1});
    for (const auto& [target, data] : {std::pair{a.get(), words}, {good.get(), {1, 12, 12}}}) {
      target->memory.assign(4, 0);
      if (!data.empty()) std::memcpy(target->memory.data(), data.data(), data.size() * 4);
      target->tensor.data = reinterpret_cast<std::byte*>(target->memory.data());
      target->tensor.bytes = data.size() * 4;
    }
    EXPECT_FALSE(run_op("EQUAL", {a.get(), good.get()}, *out).ok()) << words.size();
    EXPECT_TRUE(run_op("EQUAL", {good.get(), good.get()}, *out).ok());
  }
}

}  // namespace
}  // namespace reef::ops

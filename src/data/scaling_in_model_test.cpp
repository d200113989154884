// SPDX-License-Identifier: Apache-2.0
#include "data/scaling_in_model.h"

#include <vector>

#include <gtest/gtest.h>

#include "data/preprocess.h"
#include "ir/constants.h"
#include "numeric/half.h"

namespace reef::data {
namespace {

// input -> operators with a constant each -> output. Float inputs of [1, 8, 8, 3].
class Chain {
 public:
  Chain() {
    model_.subgraphs.resize(1);
    model_.buffers.resize(1);
    graph().inputs = {add_tensor({1, 8, 8, 3})};
    last_ = graph().inputs[0];
  }
  // first: the constant stands in front of the values.
  Chain& with(const char* type, std::vector<float> values, bool first = false) {
    const std::int32_t constant = add_tensor({static_cast<std::int32_t>(values.size())});
    ir::set_constant(model_, graph().tensors[at(constant)], values);
    return then(type, first ? std::vector<std::int32_t>{constant, last_} : std::vector<std::int32_t>{last_, constant});
  }
  Chain& with_halves(const char* type, float value) {
    const std::int32_t stored = add_tensor({1}), constant = add_tensor({1});
    ir::Tensor& tensor = graph().tensors[at(stored)];
    tensor.type = ir::DataType::kFloat16;
    ir::set_constant(model_, tensor, std::vector<std::uint16_t>{numeric::float_to_half(value)});
    add_op("DEQUANTIZE", {stored}, constant);
    return then(type, {last_, constant});
  }
  Chain& then(const char* type) { return then(type, {last_}); }
  std::optional<ExpectedPixels> expected() {
    graph().outputs = {last_};
    return pixels_expected(model_, 0);
  }
  const ir::Model& model() {
    graph().outputs = {last_};
    return model_;
  }

 private:
  ir::Subgraph& graph() { return model_.subgraphs[0]; }
  std::int32_t add_tensor(ir::Shape shape) {
    ir::Tensor tensor;
    tensor.type = ir::DataType::kFloat32;
    tensor.shape = std::move(shape);
    graph().tensors.push_back(std::move(tensor));
    return static_cast<std::int32_t>(graph().tensors.size()) - 1;
  }
  void add_op(const char* type, std::vector<std::int32_t> inputs, std::int32_t output) {
    ir::Operator op;
    op.type = type;
    op.inputs = std::move(inputs);
    op.outputs = {output};
    graph().operators.push_back(std::move(op));
  }
  Chain& then(const char* type, std::vector<std::int32_t> inputs) {
    const std::int32_t result = add_tensor({1, 8, 8, 3});
    add_op(type, std::move(inputs), result);
    last_ = result;
    return *this;
  }

  ir::Model model_;
  std::int32_t last_ = 0;
};

TEST(ScalingInModel, PixelsFrom0To255) {
  EXPECT_EQ(Chain().with("MUL", {1 / 255.0F}).expected(), ExpectedPixels::kBytes);
  EXPECT_EQ(Chain().with("MUL", {1 / 127.5F}).with("SUB", {1}).expected(), ExpectedPixels::kBytes);
  EXPECT_EQ(Chain().with("MUL", {1 / 127.5F}, true).with("ADD", {-1}, true).then("CONV_2D").expected(),
            ExpectedPixels::kBytes);
  EXPECT_EQ(Chain().then("TRANSPOSE").with("DIV", {255}).with("SUB", {0.485F, 0.456F, 0.406F}).expected(),
            ExpectedPixels::kBytes);
  EXPECT_EQ(Chain().with("SUB", {123.675F, 116.28F, 103.53F}).with("MUL", {1 / 58.4F, 1 / 57.1F, 1 / 57.4F}).expected(),
            ExpectedPixels::kBytes);
  EXPECT_EQ(Chain().with("SUB", {103.9F, 116.8F, 123.7F}).expected(), ExpectedPixels::kBytes) << "Caffe's networks";
  EXPECT_EQ(Chain().with_halves("MUL", 1 / 127.5F).expected(), ExpectedPixels::kBytes) << "float16 weights";
}

TEST(ScalingInModel, PixelsFrom0To1) {
  EXPECT_EQ(Chain().with("SUB", {0.485F, 0.456F, 0.406F}).with("DIV", {0.229F, 0.224F, 0.225F}).expected(),
            ExpectedPixels::kUnit);
  EXPECT_EQ(Chain().with("MUL", {2}).with("SUB", {1}).expected(), ExpectedPixels::kUnit);
  EXPECT_EQ(Chain().with("MUL", {255}).expected(), ExpectedPixels::kUnit);
}

TEST(ScalingInModel, WhatSaysNothing) {
  EXPECT_EQ(Chain().then("CONV_2D").with("MUL", {1 / 255.0F}).expected(), std::nullopt) << "not of the input";
  EXPECT_EQ(Chain().with("ADD", {0.1F}).expected(), std::nullopt);
  EXPECT_EQ(Chain().with("MUL", {1}).expected(), std::nullopt);
  EXPECT_EQ(Chain().with("MUL", {1e-6F}).expected(), std::nullopt);
  EXPECT_EQ(Chain().with("DIV", {255}, true).expected(), std::nullopt) << "divided by the input";
  EXPECT_EQ(Chain().with("MUL", std::vector<float>(64, 1 / 255.0F)).expected(), std::nullopt) << "a weight per place";
  EXPECT_EQ(Chain().with("DIV", {0}).expected(), std::nullopt);
  EXPECT_EQ(Chain().expected(), std::nullopt);
  EXPECT_EQ(pixels_expected(Chain().model(), 1), std::nullopt) << "there is one input";
}

// The recipe that follows is no guess, so that nobody is warned and nothing else is tried.
TEST(ScalingInModel, IsTakenWhereNothingIsSaid) {
  Chain chain;
  const auto chosen = choose_preprocess("", chain.with("MUL", {1 / 255.0F}).model(), 0);
  ASSERT_TRUE(chosen.ok());
  EXPECT_EQ(to_string(chosen->preprocess), "none");
  EXPECT_FALSE(chosen->is_guess);
  EXPECT_EQ(to_string(choose_preprocess("unit", chain.model(), 0)->preprocess), "scale=1/255");
}

}  // namespace
}  // namespace reef::data

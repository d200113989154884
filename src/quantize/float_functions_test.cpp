// SPDX-License-Identifier: Apache-2.0
#include "quantize/float_functions.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"

namespace reef::quantize {
namespace {

// x * tanh(log(1 + exp(-(-x)))) behind a convolution; NEG has no 8-bit kernel. `extra`: further operators.
ir::Model mish(std::string_view outputs, std::string_view extra = "") {
  const std::string text = std::string(R"(model { subgraph "main" inputs(%0) outputs()") + std::string(outputs) +
                           R"() {
    %0 "picture" : float32[1, 4, 4, 1]
    %1 "weights" : float32[2, 1, 1, 1] buffer=1 = [1, -1]
    %2 "bias" : float32[2] buffer=2 = [0, 0.5]
    %3 "x" : float32[1, 4, 4, 2]
    %4 "a" : float32[1, 4, 4, 2]
    %5 "b" : float32[1, 4, 4, 2]
    %6 "one" : float32[] buffer=3 = [1]
    %7 "c" : float32[1, 4, 4, 2]
    %8 "d" : float32[1, 4, 4, 2]
    %9 "e" : float32[1, 4, 4, 2]
    %10 "y" : float32[1, 4, 4, 2]
    %11 "z" : float32[1, 4, 4, 2]
    %3 = CONV_2D(%0, %1, %2) code=3 Conv2DOptions{padding=VALID, stride_w=1, stride_h=1}
    %4 = NEG(%3) code=59
    %5 = EXP(%4) code=47
    %7 = ADD(%5, %6) code=0 AddOptions{}
    %8 = LOG(%7) code=73
    %9 = TANH(%8) code=28
    %10 = MUL(%3, %9) code=18 MulOptions{}
)" + std::string(extra) + "}}";
  auto model = ir::parse(text);
  EXPECT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(ir::verify(*model).ok()) << ir::verify(*model).message();
  return std::move(model).value();
}

// Types of the operators that stay float.
std::string in_float(const ir::Model& model, const QuantizeOptions& options = {}) {
  const std::vector<Decision> decisions = decide(model, options);
  std::string result;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    if (decisions[i].treatment != Treatment::kFloat) continue;
    result += (result.empty() ? "" : " ") + model.subgraphs[0].operators[i].type;
  }
  return result;
}

TEST(FloatFunctions, AFunctionOfOneTensorStaysFloatAsAWhole) {
  EXPECT_EQ(in_float(mish("%10")), "NEG EXP ADD LOG TANH MUL");
}

TEST(FloatFunctions, WhatOthersReadEndsIt) {
  EXPECT_EQ(in_float(mish("%10, %8")), "NEG EXP ADD LOG");
  EXPECT_EQ(in_float(mish("%10, %5")), "NEG EXP ADD LOG TANH");  // two functions, of x and of the exponential
}

// relu(x) + elu(min(x, 0)), as SELU is imported: each of these has an 8-bit kernel, and ELU is not on the chip.
TEST(FloatFunctions, SeveralRoundingsAreSpared) {
  const std::string head = R"(model { subgraph "main" inputs(%0) outputs(%5) {
    %0 "x" : float32[1, 4, 4, 2]
    %1 "zero" : float32[] buffer=1 = [0]
    %2 "below" : float32[1, 4, 4, 2]
    %3 "grown" : float32[1, 4, 4, 2]
    %4 "above" : float32[1, 4, 4, 2]
    %5 "y" : float32[1, 4, 4, 2]
)";
  const auto selu = ir::parse(head + R"(
    %2 = MINIMUM(%0, %1) code=57 MaximumMinimumOptions{}
    %3 = ELU(%2) code=111
    %4 = RELU(%0) code=19
    %5 = ADD(%3, %4) code=0 AddOptions{}
  }})");
  ASSERT_TRUE(selu.ok()) << selu.status().message();
  EXPECT_EQ(in_float(*selu), "MINIMUM ELU RELU ADD");
  const auto shifted = ir::parse(head + R"(
    %2 = ELU(%0) code=111
    %5 = ADD(%2, %1) code=0 AddOptions{}
  }})");
  ASSERT_TRUE(shifted.ok()) << shifted.status().message();
  EXPECT_EQ(in_float(*shifted), "") << "two operators have little to gain";
}

TEST(FloatFunctions, AnotherTensorEndsIt) {
  EXPECT_EQ(
      in_float(mish("%11", "%11 = CONV_2D(%0, %1, %2) code=3 Conv2DOptions{padding=VALID, stride_w=1, stride_h=1}")),
      "NEG EXP ADD LOG TANH MUL");
  EXPECT_EQ(in_float(mish("%11", "%11 = MUL(%10, %3) code=18 MulOptions{}")), "NEG EXP ADD LOG TANH MUL MUL");
}

TEST(FloatFunctions, NotInFullIntegerModels) {
  QuantizeOptions options;
  options.full_integer = true;
  EXPECT_EQ(in_float(mish("%10"), options), "NEG");
}

}  // namespace
}  // namespace reef::quantize

// SPDX-License-Identifier: Apache-2.0
// Element-wise operators with constants and repeated operands, SQUARED_DIFFERENCE, RSQRT and L2_NORMALIZATION, through
// the code generator and the virtual device: outputs must be those of the chip reference to the last bit, and within
// one of TFLite's.
#include <gtest/gtest.h>

#include "chip_against_cpu.h"
#include "generated_code.h"
#include "quantized_model.h"
#include "random_choice.h"
#include "trials.h"

namespace reef::testing {
namespace {

void expect_exact(const ir::Model& model, unsigned seed, tiled::Level level) {
  SCOPED_TRACE(level == tiled::Level::kBetter ? "-O1" : "-O0");
  const auto package = compiler::generate_code_with(WholeModel(model).part(1 + seed), {.level = level});
  ASSERT_TRUE(package.ok()) << package.status().message();
  // At -O0 vectors are gathered at Google's pace, which rests on timing.
  const bool by_timing = level == tiled::Level::kAsGoogle;
  const device::Schedule schedule = schedule_of(seed);
  const Status status = runs_as_chip_reference(model, *package, seed, by_timing ? nullptr : &schedule);
  EXPECT_TRUE(status.ok()) << status.message();
  if (by_timing) return;
  const Status sound = passes_audit(*package);
  EXPECT_TRUE(sound.ok()) << sound.message();
  const Status races = has_no_races(*package);
  EXPECT_TRUE(races.ok()) << races.message();
}
void expect_exact_at_both_levels(const ir::Model& model, unsigned seed) {
  expect_exact(model, seed, tiled::Level::kBetter);
  expect_exact(model, seed, tiled::Level::kAsGoogle);
}

std::string_view options_of(const std::string& op) {
  if (op == "MAXIMUM" || op == "MINIMUM") return "MaximumMinimumOptions";
  if (op == "ADD") return "AddOptions";
  if (op == "SUB") return "SubOptions";
  if (op == "MUL") return "MulOptions";
  return "SquaredDifferenceOptions";
}
bool is_extreme(const std::string& op) { return op == "MAXIMUM" || op == "MINIMUM"; }

struct Pair {
  std::string op;
  ir::Shape a, b, out;
  int constant = -1;  // which of both
  ir::DataType type = ir::DataType::kInt8;
  std::int64_t zero_point = 5;
  float b_scale = 0.031f;
};

ir::Model model_of(const Pair& p) {
  QuantizedModel model(Quantized{p.type, 0.05f, p.zero_point});
  const bool like = is_extreme(p.op);
  std::int32_t operands[2];
  for (int k = 0; k < 2; ++k) {
    const ir::Shape& shape = k == 0 ? p.a : p.b;
    operands[k] = p.constant == k ? model.weights(shape) : model.input(shape, k == 0 ? "a" : "b");
    ir::Quantization& q = model.tensor(operands[k]).quantization;
    q.zero_point = {p.zero_point};
    q.scale = {k == 0 || like ? 0.05f : p.b_scale};
  }
  Quantized to{p.type, 0.05f, p.zero_point};
  if (p.op == "MUL") to = {p.type, 0.3f, 3};
  if (p.op == "ADD" || p.op == "SUB") to = {p.type, 0.08f, 3};
  if (p.op == "SQUARED_DIFFERENCE") to = {p.type, 0.4f, p.type == ir::DataType::kInt8 ? -128 : 0};
  ir::Attributes a;
  if (!like && p.op != "SQUARED_DIFFERENCE") a.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t y =
      model.op(p.op, {operands[0], operands[1]}, {model.computed(p.out, to)}, options_of(p.op), a, 2);
  return model.finish({y});
}

std::string text_of(const Pair& p) {
  return fmt::format("{} {} {} constant {} zero {}", p.op, p.a.to_string(), p.b.to_string(), p.constant, p.zero_point);
}

const char* const kTwoOperands[] = {"ADD", "SUB", "MUL", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"};

TEST(CodegenSquares, RepeatedOperands) {
  const ir::Shape whole{1, 6, 9, 12};
  unsigned seed = 0;
  for (const ir::Shape& part : {ir::Shape{1, 6, 1, 12},
                                {1, 1, 9, 12},
                                {1, 6, 9, 1},
                                {1, 1, 1, 12},
                                {1, 6, 1, 1},
                                {1, 1, 9, 1},
                                {1, 1, 1, 1},
                                {9, 12},
                                {6, 1, 12},
                                {9, 1}}) {
    for (const char* op : kTwoOperands) {
      Pair p{op, whole, part, whole};
      if (++seed % 2 == 0) std::swap(p.a, p.b);
      SCOPED_TRACE(text_of(p));
      expect_exact(model_of(p), seed, seed % 4 < 2 ? tiled::Level::kBetter : tiled::Level::kAsGoogle);
    }
  }
  for (const char* op : kTwoOperands) {  // both
    const Pair p{op, {1, 6, 1, 12}, {1, 1, 9, 12}, whole};
    SCOPED_TRACE(text_of(p));
    expect_exact_at_both_levels(model_of(p), ++seed);
  }
}

TEST(CodegenSquares, Constants) {
  const ir::Shape whole{1, 7, 5, 10};
  unsigned seed = 0;
  for (const ir::Shape& part : {ir::Shape{}, {10}, {1, 1, 1, 10}, {1, 7, 5, 10}, {1, 7, 1, 10}, {5, 1}, {7, 5, 1}}) {
    for (const char* op : kTwoOperands) {
      Pair p{op, whole, part, whole, 1};
      if (++seed % 3 == 0) {
        std::swap(p.a, p.b);
        p.constant = 0;
      }
      if (seed % 4 == 0 && p.op != "SQUARED_DIFFERENCE") p.type = ir::DataType::kUInt8;
      SCOPED_TRACE(text_of(p));
      expect_exact(model_of(p), seed, seed % 4 < 2 ? tiled::Level::kBetter : tiled::Level::kAsGoogle);
    }
  }
  for (const char* op : kTwoOperands) {  // of vectors
    for (const ir::Shape& part : {ir::Shape{}, {1, 150}, {150}}) {
      const Pair p{op, {1, 150}, part, {1, 150}, 1};
      SCOPED_TRACE(text_of(p));
      expect_exact_at_both_levels(model_of(p), ++seed);
    }
  }
}

TEST(CodegenSquares, SquaredDifferences) {
  unsigned seed = 0;
  for (const ir::Shape& shape :
       {ir::Shape{1, 1, 1, 1}, {1, 5, 6, 7}, {1, 13, 21, 64}, {1, 40, 33, 20}, {1, 4, 4, 130}, {1, 300}, {6, 17}}) {
    for (const float scale : {0.05f, 0.013f, 0.2f}) {
      const Pair p{"SQUARED_DIFFERENCE", shape, shape, shape, -1, ir::DataType::kInt8, 20, scale};
      SCOPED_TRACE(text_of(p));
      expect_exact_at_both_levels(model_of(p), ++seed);
    }
  }
}

ir::Model unary_model(const char* op, const ir::Shape& shape, Quantized from, Quantized to, int conv = 0) {
  QuantizedModel model(from);
  std::int32_t x = model.input(shape);
  if (conv > 0) x = model.conv(x, conv);
  model.tensor(x).quantization.zero_point = {from.zero_point};
  ir::Attributes a;
  const bool normalizes = std::string_view(op) == "L2_NORMALIZATION";
  if (normalizes) a.set("fused_activation_function", ir::EnumName{"NONE"});
  return model.finish(
      {model.op(op, {x}, {model.computed(model.shape(x), to)}, normalizes ? "L2NormOptions" : "", a, 2)});
}

TEST(CodegenSquares, InverseRoots) {
  unsigned seed = 0;
  for (const float in : {0.05f, 0.7f}) {
    for (const float out : {0.02f, 0.1f}) {
      const Quantized from{ir::DataType::kInt8, in, -128}, to{ir::DataType::kInt8, out, seed % 2 == 0 ? -128 : 7};
      const ir::Model model = unary_model("RSQRT", {1, 5, 9, 11}, from, to);
      expect_exact_at_both_levels(model, ++seed);
      const auto distance = distance_from_tflite(model, seed);
      ASSERT_TRUE(distance.ok()) << distance.status().message();
      EXPECT_LE(*distance, 1);
    }
  }
}

TEST(CodegenSquares, Normalizations) {
  unsigned seed = 0;
  for (const ir::Shape& shape : {ir::Shape{1, 128},
                                 {1, 1},
                                 {1, 6, 7, 16},
                                 {1, 5, 5, 3},
                                 {1, 9, 30, 70},
                                 {1, 1, 3, 5},
                                 {20, 30},
                                 {1, 4, 4, 513}}) {
    for (const int zero : {0, -128, 100}) {
      SCOPED_TRACE(shape.to_string());
      const Quantized from{ir::DataType::kInt8, 0.05f, zero}, to{ir::DataType::kInt8, 1.0f / 128, 0};
      const ir::Model model = unary_model("L2_NORMALIZATION", shape, from, to);
      expect_exact_at_both_levels(model, ++seed);
      const auto distance = distance_from_tflite(model, seed);
      ASSERT_TRUE(distance.ok()) << distance.status().message();
      EXPECT_LE(*distance, 1);
    }
  }
  const Quantized from{ir::DataType::kUInt8, 0.05f, 130}, to{ir::DataType::kUInt8, 1.0f / 128, 128};
  expect_exact_at_both_levels(unary_model("L2_NORMALIZATION", {1, 8, 9, 6}, from, to, 22), ++seed);
}

// Rows of small numbers, whose roots are large, and of large ones.
TEST(CodegenSquares, NormalizationOfAllLengths) {
  for (const int most : {0, 1, 2, 5, 20, 100, 127}) {
    QuantizedModel model(Quantized{ir::DataType::kInt8, 0.05f, 0});
    const std::int32_t x = model.input({1, 12, 12, 40});
    ir::Attributes a;
    a.set("fused_activation_function", ir::EnumName{"NONE"});
    const std::int32_t small = model.op(
        "QUANTIZE", {x}, {model.computed(model.shape(x), {ir::DataType::kInt8, 0.05f * 128 / (most + 0.5f), 0})},
        "QuantizeOptions", {}, 2);
    const std::int32_t y =
        model.op("L2_NORMALIZATION", {small}, {model.computed(model.shape(x), {ir::DataType::kInt8, 1.0f / 128, 0})},
                 "L2NormOptions", a, 2);
    const ir::Model finished = model.finish({y});
    SCOPED_TRACE(most);
    expect_exact(finished, static_cast<unsigned>(most), tiled::Level::kBetter);
  }
}

TEST(CodegenSquares, NormalizationIsWithinOneOfTflite) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    RandomChoice choice(seed);
    const int most = choice.among({0, 1, 1, 2, 3, 5, 10, 30, 60, 127}), channels = choice.between(1, 600);
    SCOPED_TRACE(fmt::format("{} channels within {}", channels, most));
    const ir::Model model = unary_model("L2_NORMALIZATION", {1, 4, 5, channels}, {ir::DataType::kInt8, 0.05f, 0},
                                        {ir::DataType::kInt8, 1.0f / 128, 0});
    const auto distance = distance_from_tflite(model, seed, most);
    ASSERT_TRUE(distance.ok()) << distance.status().message();
    EXPECT_LE(*distance, 1);
  }
}

TEST(CodegenSquares, AreWithinOneOfTflite) {
  int largest = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    RandomChoice choice(seed);
    Pair p;
    p.op = choice.likely(60) ? "SQUARED_DIFFERENCE" : choice.likely(50) ? "MAXIMUM" : "MINIMUM";
    p.a = p.b = p.out = {1, choice.between(1, 12), choice.between(1, 12), choice.between(1, 20)};
    p.zero_point = choice.zero_point(p.type);
    p.b_scale = static_cast<float>(choice.between(5, 150)) / 1000;
    if (choice.likely(50)) p.constant = choice.between(0, 1);
    SCOPED_TRACE(text_of(p));
    const auto distance = distance_from_tflite(model_of(p), seed);
    ASSERT_TRUE(distance.ok()) << distance.status().message();
    EXPECT_LE(*distance, is_extreme(p.op) && p.constant >= 0 ? 0 : 1);
    largest = std::max(largest, *distance);
  }
  EXPECT_EQ(largest, 1) << "maxima of computed tensors are one off where their difference is odd";
}

}  // namespace
}  // namespace reef::testing

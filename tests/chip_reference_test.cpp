// SPDX-License-Identifier: Apache-2.0
// The chip reference against TFLite, op by op: what only moves elements is equal, what computes is close, and what it
// does not know it says. TFLite is a recording of the real runtime (tests/vectors), or, for forms that were not
// recorded, our interpreter, which equals that runtime.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "chip_reference.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "vector_case.h"

namespace reef::testing {
namespace {

std::vector<std::uint8_t> as_bytes(const std::vector<std::byte>& data) {
  std::vector<std::uint8_t> bytes;
  for (const std::byte b : data) bytes.push_back(std::to_integer<std::uint8_t>(b));
  return bytes;
}

int largest_difference(ir::DataType type, const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  int largest = a.size() == b.size() ? 0 : 1 << 20;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool is_signed = type == ir::DataType::kInt8;
    const int x = is_signed ? static_cast<std::int8_t>(a[i]) : a[i],
              y = is_signed ? static_cast<std::int8_t>(b[i]) : b[i];
    largest = std::max(largest, std::abs(x - y));
  }
  return largest;
}

// ---- Recorded cases ----

// What a compiler sees: shapes are known, 8-bit tensors are quantized, and all but the first input may be constant.
ir::Model as_compiled(ir::Model model, const VectorCase& vector, bool make_constant) {
  ir::Subgraph& graph = model.subgraphs[0];
  const auto at = [&](std::int32_t i) -> ir::Tensor& { return graph.tensors[static_cast<std::size_t>(i)]; };
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) at(graph.outputs[i]).shape = vector.outputs[i].shape;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) at(graph.inputs[i]).shape = vector.inputs[i].shape;
  for (ir::Tensor& tensor : graph.tensors) {
    if (!ir::is_integer_8(tensor.type) || tensor.quantization.is_quantized()) continue;
    tensor.quantization.scale = {1};
    tensor.quantization.zero_point = {0};
  }
  while (make_constant && graph.inputs.size() > 1) {
    at(graph.inputs.back()).buffer = static_cast<std::int32_t>(model.buffers.size());
    model.buffers.push_back({Bytes(as_bytes(vector.inputs[graph.inputs.size() - 1].data))});
    graph.inputs.pop_back();
  }
  return model;
}

struct Outcome {
  int compared = 0;
  int largest = 0;
  std::map<std::string, int> declined;
};

void compare(const VectorCase& vector, const ir::Model& model, Outcome& outcome) {
  const ir::Subgraph& graph = model.subgraphs[0];
  NamedBytes given;
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    given[graph.tensors[static_cast<std::size_t>(graph.inputs[i])].name] = as_bytes(vector.inputs[i].data);
  }
  for (const std::int32_t i : graph.outputs) wanted.push_back(graph.tensors[static_cast<std::size_t>(i)].name);
  const auto results = evaluate_as_chip(model, given, wanted, {});
  if (!results.ok()) {
    ++outcome.declined[results.status().message()];
    return;
  }
  ++outcome.compared;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const int difference =
        largest_difference(vector.outputs[i].type, results->at(wanted[i]), as_bytes(vector.outputs[i].data));
    outcome.largest = std::max(outcome.largest, difference);
  }
}

Outcome compare_all(const std::string& op, bool make_constant) {
  Outcome outcome;
  const auto cases = read_vector_file(REEF_SOURCE_DIR "/tests/vectors/" + op + ".jsonl");
  EXPECT_TRUE(cases.ok()) << cases.status().message();
  for (const VectorCase& vector : *cases) {
    const auto is_8_bit = [](const RecordedTensor& tensor) { return ir::is_integer_8(tensor.type); };
    if (vector.runtime_refused || vector.invocations != 1) continue;
    if (!std::all_of(vector.outputs.begin(), vector.outputs.end(), is_8_bit)) continue;
    if (!std::any_of(vector.inputs.begin(), vector.inputs.end(), is_8_bit)) continue;
    // TFLite's fixed-point multiplier wraps around there; the chip's is a float.
    if (vector.name.ends_with("scales_huge") || vector.name.find("output_scale_") != std::string::npos) continue;
    const auto model = tflite::read_model(vector.model);
    if (model.ok()) compare(vector, as_compiled(*model, vector, make_constant), outcome);
  }
  return outcome;
}

struct Expected {
  const char* op;
  int cases;    // at least so many are computed
  int largest;  // difference from TFLite, in codes
  bool make_constant = false;
};

class ChipReferenceVectors : public ::testing::TestWithParam<Expected> {};

TEST_P(ChipReferenceVectors, StaysCloseToTflite) {
  const Expected& expected = GetParam();
  const Outcome outcome = compare_all(expected.op, expected.make_constant);
  std::printf("%s: %d cases compared, by at most %d apart\n", expected.op, outcome.compared, outcome.largest);
  for (const auto& [reason, count] : outcome.declined) std::printf("  %d: %s\n", count, reason.c_str());
  EXPECT_GE(outcome.compared, expected.cases);
  EXPECT_LE(outcome.largest, expected.largest);
}

// A difference of one: ties go to even here, and TFLite rounds twice. MAXIMUM: the chip's own loses a bit.
constexpr Expected kExpected[] = {{"CONV_2D", 150, 1},
                                  {"DEPTHWISE_CONV_2D", 150, 1},
                                  {"FULLY_CONNECTED", 30, 1},
                                  {"AVERAGE_POOL_2D", 25, 1},
                                  {"MAX_POOL_2D", 25, 1},
                                  {"MEAN", 15, 1},
                                  {"REDUCE_MAX", 5, 0},
                                  {"REDUCE_MIN", 5, 0},
                                  {"ADD", 30, 1},
                                  {"SUB", 20, 1},
                                  {"MUL", 20, 1},
                                  {"CONCATENATION", 1, 1},
                                  {"PAD", 10, 0},
                                  {"RESHAPE", 1, 0},
                                  {"SQUEEZE", 1, 0},
                                  {"EXPAND_DIMS", 1, 0},
                                  {"SPLIT", 1, 0},
                                  {"STRIDED_SLICE", 1, 0},
                                  {"SLICE", 1, 0},
                                  {"QUANTIZE", 12, 1},
                                  {"RELU", 15, 1},
                                  {"RELU6", 15, 1},
                                  {"LOGISTIC", 15, 1},
                                  {"TANH", 15, 1},
                                  {"SOFTMAX", 18, 1},
                                  {"MAXIMUM", 10, 1},
                                  {"MINIMUM", 10, 1},
                                  {"RELU_N1_TO_1", 5, 1},
                                  {"PRELU", 1, 1, true},
                                  {"TRANSPOSE", 1, 0},
                                  {"MUL", 2, 1, true}};
INSTANTIATE_TEST_SUITE_P(All, ChipReferenceVectors, ::testing::ValuesIn(kExpected), [](const auto& info) {
  return std::string(info.param.op) + (info.param.make_constant ? "_constant" : "");
});

// ---- Forms that were not recorded ----

// One op in int8, 'x' -> 'y', with a second operand that is constant: codes, or an int32 size.
class OneOp {
 public:
  OneOp(std::string type, ir::Shape input, ir::Shape output) {
    model_.buffers.resize(2);
    ir::Subgraph& graph = model_.subgraphs.emplace_back();
    graph.tensors = {tensor("x", std::move(input), 0.05f, -3), tensor("c", {}, 0.02f, 5),
                     tensor("y", std::move(output), 0.05f, -3)};
    graph.inputs = {0};
    graph.outputs = {2};
    ir::Operator& op = graph.operators.emplace_back();
    op.type = std::move(type);
    op.inputs = {0, 1};
    op.outputs = {2};
    graph.tensors[1].buffer = 1;
  }
  ir::Operator& op() { return model_.subgraphs[0].operators[0]; }
  void set_output_scale(float scale, std::int64_t zero) {
    model_.subgraphs[0].tensors[2].quantization.scale = {scale};
    model_.subgraphs[0].tensors[2].quantization.zero_point = {zero};
  }
  void set_constant(std::vector<std::uint8_t> codes) {
    model_.subgraphs[0].tensors[1].shape = {static_cast<std::int32_t>(codes.size())};
    model_.buffers[1].data = Bytes(std::move(codes));
  }
  void set_size(std::int32_t height, std::int32_t width) {
    ir::Tensor& size = model_.subgraphs[0].tensors[1];
    size.type = ir::DataType::kInt32;
    size.quantization = {};
    std::vector<std::uint8_t> bytes(8);
    std::memcpy(bytes.data(), &height, 4);
    std::memcpy(bytes.data() + 4, &width, 4);
    size.shape = {2};
    model_.buffers[1].data = Bytes(std::move(bytes));
  }
  const ir::Model& model() const { return model_; }

 private:
  static ir::Tensor tensor(std::string name, ir::Shape shape, float scale, std::int64_t zero) {
    ir::Tensor result;
    result.name = std::move(name);
    result.type = ir::DataType::kInt8;
    result.shape = std::move(shape);
    result.has_quantization = true;
    result.quantization.scale = {scale};
    result.quantization.zero_point = {zero};
    return result;
  }
  ir::Model model_;
};

// Largest difference between the reference and TFLite for random inputs.
int difference_from_tflite(const ir::Model& model) {
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(model));
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
  const Status prepared = (*interpreter)->prepare();
  EXPECT_TRUE(prepared.ok()) << prepared.message();
  std::mt19937 random(3);
  int largest = 0;
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint8_t> x((*interpreter)->input_bytes(0).size());
    for (std::uint8_t& code : x) code = static_cast<std::uint8_t>(random());
    std::memcpy((*interpreter)->input_bytes(0).data(), x.data(), x.size());
    EXPECT_TRUE((*interpreter)->invoke().ok());
    const auto* y = reinterpret_cast<const std::uint8_t*>((*interpreter)->output(0).data);
    const auto found = evaluate_as_chip(model, {{"x", x}}, {"y"}, {});
    EXPECT_TRUE(found.ok()) << found.status().message();
    if (!found.ok()) return 1 << 20;
    const std::vector<std::uint8_t> expected(y, y + (*interpreter)->output(0).bytes);
    largest = std::max(largest, largest_difference(ir::DataType::kInt8, found->at("y"), expected));
  }
  return largest;
}

TEST(ChipReference, ConstantsPerChannel) {
  const std::vector<std::uint8_t> constant = {5, 15, 250, 100, 128};
  for (const char* type : {"ADD", "SUB", "MUL"}) {
    OneOp model(type, {1, 3, 4, 5}, {1, 3, 4, 5});
    model.set_constant(constant);
    model.set_output_scale(0.07f, 10);
    // A sum's constant is rounded to the input's scale first, which here can cost 0.5 * 0.05 / 0.07 more.
    EXPECT_LE(difference_from_tflite(model.model()), 1) << type;
  }
}

// A window of 7 x 7 that holds 28 values, with the mean -254.5: Google's programs weight them with 176400 / 28 and
// divide by 176400, the least common multiple of all windows' values, which keeps the tie. 1/28 in float32 is a little
// too much.
TEST(ChipReference, AveragesOfWindowsThatTheBorderCuts) {
  OneOp model("AVERAGE_POOL_2D", {1, 8, 8, 1}, {1, 8, 8, 1});
  model.set_output_scale(0.05f, 127);
  ir::Model source = model.model();
  source.subgraphs[0].tensors[0].quantization = source.subgraphs[0].tensors[2].quantization;
  source.subgraphs[0].operators[0].inputs = {0};
  ir::Attributes& attributes = source.subgraphs[0].operators[0].attributes;
  attributes.set("padding", ir::EnumName{"SAME"});
  for (const char* name : {"filter_height", "filter_width"}) attributes.set(name, std::int64_t{7});
  for (const char* name : {"stride_h", "stride_w"}) attributes.set(name, std::int64_t{1});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  std::vector<std::uint8_t> x(64, 0x80);  // the lowest: 255 below the zero point
  x[0] = 0x80 + 14;
  const auto corner = [&](int generation) {
    const auto result = evaluate_as_chip(source, {{"x", x}}, {"y"}, {.compiler_generation = generation});
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? static_cast<std::int8_t>(result->at("y")[3]) : 0;
  };
  EXPECT_EQ(corner(16), -127);                          // -254
  EXPECT_EQ(corner(reference::kReefGeneration), -128);  // -255
}

// A constant matrix times computed weights, as decision forests have it: Google's compilers load the constant as
// weights. 29 such files of one public repository give every value.
TEST(ChipReference, LayersWhoseInputIsConstant) {
  OneOp layer("FULLY_CONNECTED", {1, 5}, {3, 1});
  layer.set_constant({5, 15, 250, 100, 128, 1, 2, 3, 4, 200, 77, 66, 155, 244, 33});
  layer.set_output_scale(0.07f, 10);
  layer.op().inputs = {1, 0, -1};
  layer.op().attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  layer.op().attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  ir::Model model = layer.model();
  model.subgraphs[0].tensors[1].shape = {3, 5};
  EXPECT_LE(difference_from_tflite(model), 1);
}

// Both operands computed, as attention has it when FULLY_CONNECTED multiplies queries by keys. One public file of
// Google's compiler maps this; its four products of 49 x 32 by 32 x 49 values are those of this rule.
TEST(ChipReference, LayersWhoseWeightsAreComputed) {
  OneOp layer("FULLY_CONNECTED", {3, 5}, {3, 3});
  layer.set_output_scale(0.07f, 10);
  layer.op().inputs = {0, 0, -1};
  layer.op().attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  layer.op().attributes.set("weights_format", ir::EnumName{"DEFAULT"});
  EXPECT_LE(difference_from_tflite(layer.model()), 1);
}

// The difference is not rounded before it is squared.
TEST(ChipReference, SquaredDifferencesAreRoundedOnce) {
  OneOp difference("SQUARED_DIFFERENCE", {1, 256}, {1, 256});
  difference.set_constant({133});
  difference.set_output_scale(0.9f, -128);
  std::vector<std::uint8_t> x(256);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i);
  const auto result = evaluate_as_chip(difference.model(), {{"x", x}}, {"y"}, {});
  ASSERT_TRUE(result.ok()) << result.status().message();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double real = 0.05 * (static_cast<std::int8_t>(x[i]) + 3) - 0.02 * (static_cast<std::int8_t>(133) - 5);
    const double exact = std::min(real * real / 0.9 - 128, 127.0);
    EXPECT_NEAR(static_cast<std::int8_t>(result->at("y")[i]), exact, 0.502) << i;
  }
}

TEST(ChipReference, PicturesTwiceAsLarge) {
  OneOp nearest("RESIZE_NEAREST_NEIGHBOR", {1, 3, 4, 5}, {1, 6, 8, 5});
  nearest.set_size(6, 8);
  EXPECT_EQ(difference_from_tflite(nearest.model()), 0);
  nearest.op().attributes.set("half_pixel_centers", true);
  EXPECT_EQ(difference_from_tflite(nearest.model()), 0);
  OneOp bilinear("RESIZE_BILINEAR", {1, 3, 4, 5}, {1, 6, 8, 5});
  bilinear.set_size(6, 8);
  bilinear.op().attributes.set("half_pixel_centers", true);
  EXPECT_LE(difference_from_tflite(bilinear.model()), 1);
  OneOp same("RESIZE_BILINEAR", {1, 3, 4, 5}, {1, 3, 4, 5});
  same.set_size(3, 4);
  same.op().attributes.set("align_corners", true);
  EXPECT_EQ(difference_from_tflite(same.model()), 0);
}

TEST(ChipReference, NamesWhatItDoesNotKnow) {
  OneOp model("SIGN", {2, 2}, {2, 2});
  model.set_constant({1, 2});
  auto result = evaluate_as_chip(model.model(), {{"x", {1, 2, 3, 4}}}, {"y"}, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().message(), "op 0 SIGN: it is not known how the chip computes it");
  EXPECT_FALSE(evaluate_as_chip(model.model(), {}, {"y"}, {}).ok()) << "x is not given";
  EXPECT_FALSE(evaluate_as_chip(model.model(), {{"x", {1}}}, {"y"}, {}).ok()) << "x has four bytes";
  EXPECT_FALSE(evaluate_as_chip(model.model(), {{"z", {1}}}, {"y"}, {}).ok()) << "there is no z";
  EXPECT_TRUE(evaluate_as_chip(model.model(), {{"y", {1, 2, 3, 4}}}, {"y"}, {}).ok())
      << "what is given is not computed";
}

}  // namespace
}  // namespace reef::testing

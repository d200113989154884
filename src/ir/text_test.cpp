// SPDX-License-Identifier: Apache-2.0
// Text and back: a model that uses every field, and texts with a mistake. Real models: tests/zoo_text_test.cpp.
#include "ir/text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/file.h"
#include "ir/verify.h"

namespace reef::ir {
namespace {

Bytes bytes(std::vector<std::uint8_t> data) { return Bytes(std::move(data)); }

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  const auto* begin = reinterpret_cast<const std::uint8_t*>(values.data());
  return Bytes(std::vector<std::uint8_t>(begin, begin + values.size() * sizeof(T)));
}

void expect_round_trip(const Model& model) {
  const std::string text = print(model);
  const Result<Model> again = parse(text);
  ASSERT_TRUE(again.ok()) << again.status().message() << "\n" << text.substr(0, 2000);
  EXPECT_TRUE(*again == model) << "differs after\n"
                               << text.substr(0, 4000) << "\nprinted again:\n"
                               << print(*again).substr(0, 4000);
}

const float kOddNan = std::bit_cast<float>(0xffc12345u);

std::vector<Tensor> tensors_with_everything() {
  std::vector<Tensor> tensors(9);
  tensors[0].name = "plain";
  tensors[0].shape = {1, 8, 8, 3};
  tensors[0].shape_signature = {-1, 8, 8, 3};
  tensors[0].has_rank = true;
  tensors[1].name = std::string("odd \"name\"\\ \n\t\0\xff", 17);
  tensors[1].type = DataType::kInt8;
  tensors[1].is_variable = true;
  tensors[1].has_quantization = true;
  tensors[2].type = DataType::kInt8;
  tensors[2].shape = {2, 2};
  tensors[2].buffer = 1;
  tensors[2].has_quantization = true;
  tensors[2].quantization.scale = {0.1f, 3e-42f};
  tensors[2].quantization.zero_point = {std::numeric_limits<std::int64_t>::min(), 7};
  tensors[2].quantization.min = {kOddNan, -INFINITY, INFINITY};
  tensors[2].quantization.max = {NAN, -0.0f};
  tensors[2].quantization.dimension = 1;
  tensors[2].quantization.details = CustomQuantization{bytes({1, 2, 255})};
  tensors[3].quantization.scale = {0.5f};  // not marked as having one
  tensors[3].quantization.details = BlockwiseQuantization{1, -1, 32, {4, 8}};
  tensors[4].has_quantization = true;
  tensors[4].quantization.details = OpaqueTable{9, bytes({4, 0, 0, 0, 1, 2, 3, 4}), 4, 8};
  tensors[5].has_quantization = true;
  tensors[5].quantization.details = MultiAxisQuantization{1, 2, 0, {0, 3}};
  tensors[5].sparsity =
      Sparsity{{1, 0, 2}, {1}, {{0, 4, {}, {}}, {1, 0, {3, {0, 2}}, {2, {7, 65535}}}, {1, 1, {1, {}}, {}}}};
  tensors[6].type = DataType::kVariant;
  tensors[6].variant_sub_types = {{{1, -1}, DataType::kInt4, true}, {{}, DataType::kString, false}};
  tensors[7].type = static_cast<DataType>(200);
  tensors[7].external_buffer = 4000000000u;
  tensors[8].type = DataType::kFloat32;
  tensors[8].shape = {6};
  tensors[8].buffer = 2;
  return tensors;
}

Attributes attributes_of_every_kind() {
  Attributes attributes;
  attributes.set("yes", true);
  attributes.set("no", false);
  attributes.set("int", std::numeric_limits<std::int64_t>::min());
  attributes.set("float", static_cast<double>(0.1f));
  attributes.set("double", 0.1);
  attributes.set("whole", 3.0);
  attributes.set("large", 1e300);
  attributes.set("huge_whole", 9007199254740993.0);
  attributes.set("minus_zero", -0.0);
  attributes.set("nan", static_cast<double>(NAN));
  attributes.set("odd_nan", std::bit_cast<double>(0x7ff4000000000001u));
  attributes.set("inf", static_cast<double>(INFINITY));
  attributes.set("minus_inf", -static_cast<double>(INFINITY));
  attributes.set("padding", EnumName{"SAME"});
  attributes.set("unknown_enum", EnumName{"117"});
  attributes.set("confusing_enum", EnumName{"true"});
  attributes.set("empty_enum", EnumName{""});
  attributes.set("string", std::string("a\"b"));
  attributes.set("not a word", std::string());
  attributes.set("ints", std::vector<std::int64_t>{1, -2});
  attributes.set("no_ints", std::vector<std::int64_t>{});
  attributes.set("floats", std::vector<double>{1, -INFINITY, NAN, 0.1});
  attributes.set("no_floats", std::vector<double>{});
  attributes.set("strings", std::vector<std::string>{"x", ""});
  attributes.set("no_strings", std::vector<std::string>{});
  return attributes;
}

Model model_with_everything() {
  Model model;
  model.version = 4;
  model.description = "all \"fields\"";
  model.buffers.resize(9);
  model.buffers[1].data = bytes({0, 1, 127, 128});
  model.buffers[2].data = bytes_of<float>({1, 0.1f, NAN, kOddNan, -INFINITY, 1e-45f});
  std::vector<std::uint8_t> many(1000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::uint8_t>(i * 7);
  model.buffers[3].data = bytes(many);
  model.buffers[4] = {bytes({9, 8}), true, false};
  model.buffers[5] = {{}, false, true};
  model.buffers[6].data = bytes({'1', '.', '5', 0, 0});
  model.buffers[7].data = bytes({0, 0, 0, 0});
  Subgraph graph;
  graph.name = "main";
  graph.tensors = tensors_with_everything();
  graph.inputs = {0, 1};
  graph.outputs = {8};
  graph.debug_metadata_index = 3;
  Operator op;
  op.type = "CONV_2D";
  op.builtin_code = 3;
  op.version = 5;
  op.inputs = {0, 2, -1};
  op.outputs = {3, 4};
  op.intermediates = {-1, 5};
  op.mutating_variable_inputs = {true, false};
  op.options_type = "Conv2DOptions";
  op.attributes = attributes_of_every_kind();
  op.custom_options_format = 1;
  op.debug_metadata_index = 0;
  Operator custom;
  custom.type = "edgetpu-custom-op";
  custom.builtin_code = kCustomBuiltinCode;
  custom.opaque_options = OpaqueTable{200, bytes({1, 2, 3, 4}), 0, 12};
  custom.opaque_options_2 = OpaqueTable{1, {}, 0, 0};
  custom.custom_options = bytes({0, 255});
  custom.custom_options_are_large = true;
  Operator nameless_options;
  nameless_options.type = "mutating";  // a word of the grammar
  nameless_options.attributes.set("a", true);
  graph.operators = {op, custom, nameless_options, Operator{}};
  model.subgraphs = {graph, Subgraph{}};
  model.metadata = {{"min_runtime_version", 6}, {"", 0}};
  model.metadata_buffers = {6, 6};
  model.signatures = {{"serve", 0, {{"x", 0}, {"y", 1}}, {{"z", 8}}}, {"", 1, {}, {}}};
  model.external_buffer_groups = {"weights.bin", ""};
  model.external_buffers = {{4000000000u, 1, 1ull << 63, 12, "zip"}, {}};
  return model;
}

TEST(Text, EveryFieldSurvives) { expect_round_trip(model_with_everything()); }

TEST(Text, EmptyModels) {
  expect_round_trip(Model{});
  Model model;
  model.buffers.resize(3);
  expect_round_trip(model);
}

TEST(Text, EveryAttributeKindIsToldApart) {
  const std::vector<AttributeValue> values = {true,
                                              std::int64_t{1},
                                              1.0,
                                              EnumName{"1"},
                                              EnumName{"true"},
                                              std::string("1"),
                                              std::vector<std::int64_t>{1},
                                              std::vector<double>{1},
                                              std::vector<std::string>{"1"},
                                              std::vector<std::int64_t>{},
                                              std::vector<double>{},
                                              std::vector<std::string>{},
                                              0.1,
                                              static_cast<double>(0.1f),
                                              EnumName{"inf"},
                                              static_cast<double>(INFINITY)};
  std::vector<std::string> texts;
  for (const AttributeValue& value : values) {
    Model model;
    model.subgraphs.resize(1);
    model.subgraphs[0].operators.resize(1);
    model.subgraphs[0].operators[0].attributes.set("a", value);
    texts.push_back(print(model));
    expect_round_trip(model);
  }
  std::sort(texts.begin(), texts.end());
  EXPECT_EQ(std::unique(texts.begin(), texts.end()), texts.end());
}

// The example in the documentation.
TEST(Text, LooksAsDocumented) {
  const Result<Bytes> file = read_file(REEF_SOURCE_DIR "/docs/formats/ir_text.md", 1 << 20);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const std::string_view page(reinterpret_cast<const char*>(file->data()), file->size());
  const std::size_t begin = page.find("```\nmodel ") + 4;
  const std::string_view text = page.substr(begin, page.find("```", begin) - begin);
  const Result<Model> model = parse(text);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_TRUE(verify(*model).ok()) << verify(*model).message();
  EXPECT_EQ(print(*model), text);
  EXPECT_EQ(model->buffers.size(), 4u);
  EXPECT_EQ(model->buffers[2].data, bytes_of<std::int32_t>({100, -100}));
}

TEST(Text, TypedBuffersAndCommentsCanBeWrittenByHand) {
  const Result<Model> model = parse("model { // a comment\n buffer 1 = int16 [1, -1]\n buffer 0 }");
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->buffers[1].data, bytes_of<std::int16_t>({1, -1}));
}

TEST(Text, CutConstantsAreMarkedAndRefused) {
  TextOptions options;
  options.max_constant_bytes = 3;
  const std::string text = print(model_with_everything(), options);
  EXPECT_NE(text.find("buffer=1 = [0, 1, 127, ...]"), std::string::npos) << text;
  EXPECT_NE(text.find("buffer 3 = hex\"00070e\" ...  // 1000 bytes in all"), std::string::npos) << text;
  const Result<Model> model = parse(text);
  ASSERT_FALSE(model.ok());
  EXPECT_NE(model.status().message().find("cut short"), std::string::npos) << model.status().message();
}

TEST(Text, PrintsModelsThatDoNotVerify) {
  Model model;
  model.subgraphs.resize(1);
  model.subgraphs[0].tensors.resize(2);
  model.subgraphs[0].tensors[0].buffer = -7;
  model.subgraphs[0].tensors[1].buffer = 100;
  model.subgraphs[0].inputs = {-3, 2000};
  const std::string text = print(model);
  EXPECT_NE(text.find("buffer=-7"), std::string::npos) << text;
  EXPECT_NE(text.find("inputs(%-3, %2000)"), std::string::npos) << text;
}

void expect_error(std::string_view text, std::string_view expected) {
  const Result<Model> model = parse(text);
  ASSERT_FALSE(model.ok()) << text;
  EXPECT_EQ(model.status().code(), StatusCode::kInvalidInput);
  EXPECT_NE(model.status().message().find(expected), std::string::npos) << model.status().message();
}

TEST(Text, ErrorsNameThePlace) {
  expect_error("", "line 1, column 1: expected 'model', found the end of the text");
  expect_error("model {\n  subgrap", "line 2, column 3: expected subgraph, buffer,");
  expect_error("model {} x", "line 1, column 10: expected the end of the text");
  expect_error("model version=-1 {}", "column 15: expected a version: an integer from 0 to 4294967295, found '-1'");
  expect_error("model description=\"abc\n{}",
               "column 19: expected a description, found a string without closing quote");
  expect_error("model description=\"\\q\" {}", "column 19: expected a description: a string whose escapes");
  expect_error("model { buffer 0 = hex\"0\" }", "column 20: expected a constant with two hexadecimal digits");
  expect_error("model { buffer 0 = hex\"0g\" }", "two hexadecimal digits");
  expect_error("model { buffer 0 = hex\"\n\n00\n\" 5}", "line 4, column 3: expected subgraph");
  expect_error("model { buffer 999999999 }", "column 16: expected a buffer's number");
  expect_error("model { buffer -1 }", "column 16: expected a buffer's number");
  expect_error("model { buffer 0 = \"a\" buffer 0 = \"b\" }", "column 35: expected no content");
  expect_error("model { buffer 0 = [1] }", "column 20: expected a constant");
  expect_error("model { buffer 0 = bfloat16 [1] }", "a constant of type bfloat16 as hex");
  expect_error("model { buffer 0 = int8[128] }",
               "column 25: expected a value of type int8: an integer from -128 to 127");
  expect_error("model { buffer 0 = float32[1e99] }", "column 28: expected a value of type float32, found '1e99'");
  expect_error("model { buffer 0 = float32[nan(0x1)] }", "column 32: expected the bits of a NaN");
  expect_error("model @", "column 7: expected version, description or '{', found the character \"@\"");
}

TEST(Text, ErrorsInGraphs) {
  const auto in_graph = [](std::string_view inner) {
    return fmt::format("model {{ subgraph \"g\" inputs() outputs() {{\n{}\n}} }}", inner);
  };
  expect_error(in_graph("%1 \"a\" : int8[]"), "line 2, column 1: expected tensor %0; tensors stand in order");
  expect_error(in_graph("%0 \"a\" : int9[]"), "line 2, column 10: expected an element type");
  expect_error(in_graph("%0 \"a\" : int8[1 2]"), "column 17: expected ',' or ']', found '2'");
  expect_error(in_graph("%0 \"a\" : int8[] = [1]"), "column 17: expected the number of a buffer");
  expect_error(in_graph("%0 \"a\" : int8[] shiny"), "column 17: expected signature, ranked");
  expect_error(in_graph("%0 \"a\" : int8[] quant(scal=1)"), "column 23: expected scale, zero_point");
  expect_error(in_graph("%0 ADD()"), "column 4: expected '=' and an op");
  expect_error(in_graph("ADD()"), "column 1: expected a tensor");
  expect_error(in_graph("() = ADD(%x)"), "column 11: expected a tensor's number");
  expect_error(in_graph("() = ADD() A{} B{}"), "column 16: expected the next op");
  expect_error(in_graph("() = ADD() A{x=1, x=2}"), "column 19: expected an attribute that was not given yet");
  expect_error(in_graph("() = ADD() A{x=[1, 2.0]}"), "column 20: expected an integer, as before");
  expect_error(in_graph("() = ADD() A{x=[]}"), "column 17: expected an element; an empty list is");
  expect_error(in_graph("() = ADD() A{x=12x}"), "column 16: expected a number, found '12x'");
  expect_error(in_graph("() = ADD() A{x=9223372036854775808}"), "expected an integer: an integer from");
  expect_error(in_graph("() = ADD() mutating=[2]"), "column 22: expected 0 or 1");
}

// Every prefix of a text that uses all of the grammar, and every text with one byte replaced, ends in a result.
TEST(Text, DamagedTextsEndInAResult) {
  const std::string text = print(model_with_everything());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(parse(std::string_view(text).substr(0, size)).ok()) << size;
  }
  std::size_t accepted = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = "\"{%9-"[i % 5];
    const Result<Model> model = parse(damaged);
    if (!model.ok()) continue;
    ++accepted;
    const Result<Model> again = parse(print(*model));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(*again == *model) << i;
  }
  EXPECT_GT(accepted, 0u);
}

}  // namespace
}  // namespace reef::ir

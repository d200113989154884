// SPDX-License-Identifier: Apache-2.0
// `reef verify` judges the right thing: rewritten sources, models that remember, other weights, wrong programs.
#include <regex>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "compiler/index_inputs.h"
#include "compiler/recorded_rewrites.h"
#include "compiler/source_of_compiled.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/writer.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

bool says(const Outcome& outcome, const std::string& words) { return outcome.text.find(words) != std::string::npos; }

ir::Attributes with(std::string name, ir::AttributeValue value) {
  ir::Attributes attributes;
  attributes.set(std::move(name), std::move(value));
  return attributes;
}

class VerifyCommand : public CommandLine {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void save(const ir::Model& model, const std::string& name) {
    const Status saved = tflite::save_model(model, path(name));
    ASSERT_TRUE(saved.ok()) << saved.message();
  }
  Outcome compile(const std::string& options = "") const {
    return reef("compile --quiet " + options + " -o " + folder_.string() + " " + path("net.tflite"));
  }
  Outcome verify(const std::string& options = "") const {
    return reef("verify " + path("net.tflite") + " " + path("net_edgetpu.tflite") + " " + options);
  }
  std::optional<compiler::PlanOptions> record() const {
    const auto compiled = tflite::load_model(path("net_edgetpu.tflite"));
    EXPECT_TRUE(compiled.ok());
    return compiler::recorded_rewrites(*compiled);
  }
};

// Operators that the chip does not have, and that rewrites replace.
TEST_F(VerifyCommand, RewritesThatWereMadeAreMadeAgain) {
  const std::pair<const char*, const char*> cases[] = {
      {"HARD_SWISH", ""}, {"RELU_0_TO_1", ""}, {"LEAKY_RELU", "LeakyReluOptions"}, {"ELU", ""}};
  for (const auto& [type, options] : cases) {
    QuantizedModel model;
    const std::int32_t x = model.conv(model.input({1, 8, 8, 8}), 16, 3, 1, "NONE");
    const ir::Attributes attributes = std::string_view(type) == "LEAKY_RELU" ? with("alpha", 0.1) : ir::Attributes{};
    save(model.finish({model.conv(model.unary(type, x, options, attributes), 8)}), "net.tflite");
    ASSERT_EQ(compile().exit_code, 0) << type;
    const auto recorded = record();
    ASSERT_TRUE(recorded.has_value()) << type;
    EXPECT_TRUE(recorded->rewrites.enable.empty());
    const Outcome outcome = verify();
    EXPECT_EQ(outcome.exit_code, 0) << type << "\n" << outcome.text;
    EXPECT_TRUE(says(outcome, "values agree")) << outcome.text;
  }
}

// A rewrite that takes conversions off the model's inputs and outputs changes what it is called with.
TEST_F(VerifyCommand, InputsMayHaveBecomeOthers) {
  QuantizedModel model;
  const std::int32_t x = model.quantize(model.float_input({1, 8, 8, 8}), {});
  save(model.finish({model.dequantize(model.conv(x, 16, 3))}), "net.tflite");
  ASSERT_EQ(compile("--rewrite io").exit_code, 0);
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  ASSERT_EQ(compile().exit_code, 0);
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(VerifyCommand, AModelThatNothingWasChangedInRecordsNothing) {
  QuantizedModel model;
  save(model.finish({model.conv(model.input({1, 8, 8, 8}), 16, 3)}), "net.tflite");
  ASSERT_EQ(compile().exit_code, 0);
  EXPECT_FALSE(record().has_value());
  EXPECT_EQ(verify().exit_code, 0);
}

TEST_F(VerifyCommand, WhatARecordSaysIsReadBack) {
  std::vector<passes::Application> made(3);
  made[0].rewrite = "hard-swish";
  made[1].rewrite = "gelu";
  made[2].rewrite = "pad-v2";
  made[2].made = false;
  compiler::PlanOptions options;
  options.runtime = 13;
  options.rewrites.enable = {"gelu", "pad-v2"};
  const std::string line = compiler::rewrites_remark(made, options);
  EXPECT_EQ(line, "rewrites made: gelu, hard-swish; asked for: gelu; runtime 13");
  EXPECT_EQ(compiler::rewrites_remark({}, options), "");
}

// Names say nothing: all tensors have the same.
TEST_F(VerifyCommand, TensorsOfOneNameAreToldApart) {
  QuantizedModel model;
  const std::int32_t first = model.unary("ABS", model.input({1, 6, 6, 8}));  // on the CPU
  const std::int32_t second = model.conv(model.conv(first, 8, 3), 8);
  ir::Model made = model.finish({model.unary("ABS", second)});
  for (ir::Tensor& tensor : made.subgraphs[0].tensors) tensor.name.clear();
  save(made, "net.tflite");
  ASSERT_EQ(compile("--no-rewrites").exit_code, 0);
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  // The comparison is not empty: with other weights it fails.
  made.subgraphs[0].operators[1].inputs[2] = -1;
  save(made, "net.tflite");
  EXPECT_EQ(verify().exit_code, 1);
}

// What stands behind the chip may hide everything, as a decoder that finds nobody does: here a product with zero.
TEST_F(VerifyCommand, DifferencesThatTheCpuHidesAreSeen) {
  const auto make = [](bool other) {
    QuantizedModel model;
    if (other) model.weights({1, 5, 1, 1});  // moves on the sequence of the weights
    const std::int32_t floats = model.dequantize(model.conv(model.input({1, 6, 6, 8}), 16, 3));
    const std::int32_t zero = model.constant_bytes({0, 0, 0, 0}, {1}, ir::DataType::kFloat32);
    const std::int32_t result = model.computed_plain({1, 6, 6, 16}, ir::DataType::kFloat32, "result");
    model.op("MUL", {floats, zero}, {result}, "MulOptions");
    ir::Model made = model.finish({result});
    int number = 0;
    for (ir::Operator& op : made.subgraphs[0].operators) {
      for (const std::int32_t t : op.outputs) {
        made.subgraphs[0].tensors[static_cast<std::size_t>(t)].name = "computed " + std::to_string(++number);
      }
    }
    return made;
  };
  save(make(false), "net.tflite");
  ASSERT_EQ(compile("--no-rewrites").exit_code, 0);
  EXPECT_EQ(verify().exit_code, 0) << verify().text;
  save(make(true), "net.tflite");
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
  EXPECT_TRUE(says(outcome, "'computed 3': all 576 values agree")) << outcome.text;
  EXPECT_TRUE(says(outcome, "it has other weights")) << outcome.text;
}

// As in Coral's PoseNet: the package calls its result as the source calls the floats made of it.
TEST_F(VerifyCommand, AResultMayHaveTheNameOfItsFloats) {
  QuantizedModel model;
  const std::int32_t result = model.conv(model.input({1, 6, 6, 8}), 16, 3);
  const std::int32_t floats = model.dequantize(result);
  ir::Model made = model.finish({floats});
  save(made, "net.tflite");
  ASSERT_EQ(compile("--no-rewrites").exit_code, 0);
  std::vector<ir::Tensor>& tensors = made.subgraphs[0].tensors;
  std::swap(tensors[static_cast<std::size_t>(result)].name, tensors[static_cast<std::size_t>(floats)].name);
  save(made, "net.tflite");
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "all 576 values agree")) << outcome.text;
}

// Two of Google's compilers ask for runtime 12: the source is seen as each of them saw it.
TEST_F(VerifyCommand, RuntimeTwelveMeansTwoCompilers) {
  QuantizedModel model;
  const auto source = std::make_shared<const ir::Model>(model.finish({model.conv(model.input({1, 6, 6, 8}), 16, 3)}));
  save(*source, "net.tflite");
  ASSERT_EQ(compile("--no-rewrites").exit_code, 0);
  auto compiled = tflite::load_model(path("net_edgetpu.tflite"));
  ASSERT_TRUE(compiled.ok());
  Bytes& bytes = compiled->subgraphs[0].operators[0].custom_options;
  auto options = darwinn::read_custom_options(bytes);
  ASSERT_TRUE(options.ok());
  const auto generations = [&](int runtime) {
    options->package.compiler_version = "cl/1";
    options->package.min_runtime_version = runtime;
    bytes = Bytes(darwinn::write_custom_options(*options).value());
    std::vector<int> result;
    for (const auto& view : compiler::views_of_source(source, *compiled).views) result.push_back(view.generations[0]);
    return result;
  };
  EXPECT_EQ(generations(12), (std::vector<int>{15, 14}));
  EXPECT_EQ(generations(13), std::vector<int>{15});
  EXPECT_EQ(generations(14), std::vector<int>{16});
}

// A variable keeps its value from one operator, and from one inference, to the next.
TEST_F(VerifyCommand, VariablesKeepTheirValues) {
  QuantizedModel model;
  const std::int32_t handle = model.computed_plain({}, ir::DataType::kResource, "handle");
  ir::Attributes names = with("container", std::string("c"));
  names.set("shared_name", std::string("state"));
  model.op("VAR_HANDLE", {}, {handle}, "VarHandleOptions", names);
  const std::int32_t x = model.conv(model.input({1, 8, 8, 8}), 8, 3);
  model.op("ASSIGN_VARIABLE", {handle, x}, {}, "AssignVariableOptions");
  const std::int32_t state = model.computed({1, 8, 8, 8}, {}, "state");
  model.op("READ_VARIABLE", {handle}, {state}, "ReadVariableOptions");
  save(model.finish({model.unary("ABS", state)}), "net.tflite");
  ASSERT_EQ(compile().exit_code, 0);
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
}

TEST_F(VerifyCommand, ASourceWithOtherWeightsIsNotBlamedOnTheProgram) {
  QuantizedModel model;
  save(model.finish({model.conv(model.conv(model.input({1, 8, 8, 8}), 16, 3), 24)}), "net.tflite");
  ASSERT_EQ(compile().exit_code, 0);
  QuantizedModel other;
  other.weights({1, 5, 1, 1});  // moves on the sequence of the weights
  save(other.finish({other.conv(other.conv(other.input({1, 8, 8, 8}), 16, 3), 24)}), "net.tflite");
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(says(outcome, "was not compiled from")) << outcome.text;
  EXPECT_TRUE(says(outcome, "weights of 2 of 2 operators")) << outcome.text;
  const std::string text = verify("--json").text;  // and the error behind it
  const auto json = nlohmann::json::parse(text.substr(0, text.rfind('}') + 1), nullptr, false);
  ASSERT_TRUE(json.is_object()) << text;
  EXPECT_EQ(json["made_from_this_source"], false);
}

TEST_F(VerifyCommand, ASourceWithOtherTensorsIsNamed) {
  QuantizedModel model;
  save(model.finish({model.conv(model.input({1, 8, 8, 8}), 16, 3)}), "net.tflite");
  ASSERT_EQ(compile().exit_code, 0);
  QuantizedModel other;
  const std::int32_t y = other.conv(other.input({1, 8, 8, 8}), 16, 3);
  other.name(y, "another name");
  save(other.finish({y}), "net.tflite");
  const Outcome outcome = verify();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(says(outcome, "was not compiled from")) << outcome.text;
}

// The weights are right, one instruction is not: it reads its input one byte too far.
TEST_F(VerifyCommand, AWrongInstructionIsNamed) {
  QuantizedModel model;
  save(model.finish({model.conv(model.input({1, 8, 8, 8}), 16, 3)}), "net.tflite");
  ASSERT_EQ(compile().exit_code, 0);
  const std::string compiled = path("net_edgetpu.tflite"), listing = path("net.s");
  ASSERT_EQ(reef("disasm " + compiled + " -o " + listing).exit_code, 0);
  const auto file = read_file(listing, 1 << 24);
  ASSERT_TRUE(file.ok());
  std::string text(reinterpret_cast<const char*>(file->data()), file->size());
  const std::size_t at = text.rfind("multiply_add tiles=");
  ASSERT_NE(at, std::string::npos);
  std::smatch row, in;
  const std::string block = text.substr(at, text.find("\nset", at) - at);
  ASSERT_TRUE(std::regex_search(block, row, std::regex("; row (\\d+)")));
  ASSERT_TRUE(std::regex_search(block, in, std::regex("in     narrow byte (\\d+):")));
  text.replace(at + static_cast<std::size_t>(in.position(1)), static_cast<std::size_t>(in.length(1)),
               std::to_string(std::stoi(in[1]) + 1));
  ASSERT_TRUE(write_file(listing, std::string_view(text)).ok());
  const Outcome made = reef("asm " + listing + " --container " + compiled + " -o " + path("wrong_edgetpu.tflite"));
  ASSERT_EQ(made.exit_code, 0) << made.text;
  const Outcome outcome = reef("verify " + path("net.tflite") + " " + path("wrong_edgetpu.tflite"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_FALSE(says(outcome, "was not compiled from")) << outcome.text;
  EXPECT_TRUE(says(outcome, "does not compute what")) << outcome.text;
  EXPECT_TRUE(says(outcome, fmt::format("computed by row {} (multiply_add)", row[1].str()))) << outcome.text;
}

TEST(IndexInputs, RowsComeFromTheSmallestTable) {
  QuantizedModel model;
  const std::int32_t numbers = model.input({1, 4}, "numbers");
  model.tensor(numbers).type = ir::DataType::kInt32;
  model.tensor(numbers).quantization = {};
  const std::int32_t flat = model.computed_plain({4}, ir::DataType::kInt32, "flat");
  model.op("RESHAPE", {numbers, model.ints({4})}, {flat}, "ReshapeOptions");
  const std::int32_t large = model.computed({4, 8}, {}), small = model.computed({4, 8}, {});
  model.op("GATHER", {model.weights({50, 8}, 0.05f), flat}, {large}, "GatherOptions", with("axis", std::int64_t{0}));
  model.op("GATHER", {model.weights({20, 8}, 0.05f), flat}, {small}, "GatherOptions", with("axis", std::int64_t{0}));
  const ir::Model made = model.finish({large, small});
  EXPECT_EQ(compiler::rows_selected_by(made, 0), 20);
  std::int32_t values[] = {-1, 7, 20, 1 << 30};
  compiler::wrap_indices(ir::DataType::kInt32, 20, std::as_writable_bytes(std::span(values)));
  EXPECT_EQ((std::vector<std::int32_t>{values, values + 4}), (std::vector<std::int32_t>{19, 7, 0, 4}));
}

}  // namespace
}  // namespace reef::testing

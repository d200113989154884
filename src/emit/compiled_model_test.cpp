// SPDX-License-Identifier: Apache-2.0
#include "emit/compiled_model.h"

#include <gtest/gtest.h>

#include "formats/darwinn/reader.h"
#include "formats/tflite/test_models.h"
#include "ir/verify.h"
#include "ops/dependencies.h"

namespace reef::emit {
namespace {

using Numbers = std::vector<std::int32_t>;

// A graph whose operators mean nothing: `op` says what each operator reads and writes. Tensor names are "t0", "t1", ...
struct GraphBuilder {
  ir::Model model;

  GraphBuilder(int tensors, Numbers inputs, Numbers outputs) {
    model.description = "MLIR Converted.";
    model.buffers.resize(1);
    ir::Subgraph& graph = model.subgraphs.emplace_back();
    graph.name = "main";
    graph.inputs = std::move(inputs);
    graph.outputs = std::move(outputs);
    for (int i = 0; i < tensors; ++i) {
      ir::Tensor& tensor = graph.tensors.emplace_back();
      tensor.name = fmt::format("t{}", i);
      tensor.type = ir::DataType::kInt8;
      tensor.shape = {1, 4};
      tensor.has_rank = true;
      tensor.has_quantization = true;
      tensor.quantization.scale = {0.5f};
      tensor.quantization.zero_point = {3};
      tensor.quantization.min = {-1};
      tensor.quantization.max = {1};
    }
  }
  GraphBuilder& op(const char* type, Numbers inputs, Numbers outputs) {
    ir::Operator& op = model.subgraphs[0].operators.emplace_back();
    op.type = type;
    op.builtin_code = ir::kCustomBuiltinCode;  // so that any name can be written to a file
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    return *this;
  }
  GraphBuilder& constant(int tensor) {
    model.buffers.emplace_back();
    model.buffers.back().data = Bytes({1, 2, 3, static_cast<std::uint8_t>(tensor)});
    model.subgraphs[0].tensors[at(tensor)].buffer = static_cast<std::int32_t>(model.buffers.size()) - 1;
    return *this;
  }
};

CompiledPart part_of(const ir::Model& model, Numbers ops) {
  const ops::Dependencies::Border border = ops::Dependencies(model).border(ops);
  return {std::move(ops), border.inputs, border.outputs, Bytes({9})};
}

ir::Model must_compile(const ir::Model& model, const std::vector<Numbers>& parts, const EmitOptions& options = {}) {
  EXPECT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
  std::vector<CompiledPart> compiled;
  for (const Numbers& ops : parts) compiled.push_back(part_of(model, ops));
  auto result = compiled_model(model, compiled, options);
  EXPECT_TRUE(result.ok()) << result.status().message();
  if (!result.ok()) return {};
  tflite::testing::expect_round_trip(*result);
  return std::move(result).value();
}

std::vector<std::string> op_types(const ir::Model& model) {
  std::vector<std::string> types;
  for (const ir::Operator& op : model.subgraphs[0].operators) types.push_back(op.type);
  return types;
}
std::vector<std::string> names(const ir::Model& model, const Numbers& tensors) {
  std::vector<std::string> result;
  for (const std::int32_t t : tensors) result.push_back(model.subgraphs[0].tensors[at(t)].name);
  return result;
}
using Names = std::vector<std::string>;

TEST(CompiledModel, KeepsLeadingAndFollowingOperators) {
  GraphBuilder graph(6, {0}, {5});
  graph.constant(4).op("CAST", {0}, {1}).op("RELU", {1}, {2}).op("ADD", {2, 4}, {3}).op("ARG_MAX", {3}, {5});
  const ir::Model result = must_compile(graph.model, {{1, 2}});
  EXPECT_EQ(op_types(result), (Names{"CAST", darwinn::kCustomOpName, "ARG_MAX"}));
  const ir::Operator& custom = result.subgraphs[0].operators[1];
  EXPECT_EQ(names(result, custom.inputs), (Names{"t1"}));
  EXPECT_EQ(names(result, custom.outputs), (Names{"t3"}));
  EXPECT_EQ(custom.custom_options.size(), 1u);
  EXPECT_EQ(result.subgraphs[0].tensors.size(), 4u);  // neither t2 nor the constant
  EXPECT_EQ(result.buffers.size(), 1u);
  EXPECT_EQ(result.description, "Exported from Subgraph.");
  const ir::Tensor& tensor = result.subgraphs[0].tensors[0];
  EXPECT_FALSE(tensor.has_rank);
  EXPECT_TRUE(tensor.quantization.min.empty() && tensor.quantization.max.empty());
  EXPECT_EQ(tensor.quantization.scale, std::vector<float>{0.5f});
}

TEST(CompiledModel, ConstantsOfTheCpuGetBuffersOfTheirOwn) {
  GraphBuilder graph(5, {0}, {4});
  graph.constant(1).constant(2).op("ADD", {0, 1}, {3}).op("ADD", {3, 2}, {4});
  graph.model.subgraphs[0].tensors[2].buffer = graph.model.subgraphs[0].tensors[1].buffer;  // shared in the source
  const ir::Model result = must_compile(graph.model, {{0}});
  EXPECT_EQ(result.buffers.size(), 2u);
  EXPECT_EQ(result.subgraphs[0].tensors[1].name, "t2");
  EXPECT_EQ(result.subgraphs[0].tensors[1].buffer, 1);
}

TEST(CompiledModel, SeveralPartsStandWhereTheyCanRun) {
  GraphBuilder graph(7, {0}, {6});
  graph.op("A", {0}, {1})
      .op("B", {1}, {2})
      .op("CPU", {2}, {3})
      .op("C", {3}, {4})
      .op("D", {4, 1}, {5})
      .op("E", {5}, {6});
  const ir::Model result = must_compile(graph.model, {{0, 1}, {3, 4}});
  EXPECT_EQ(op_types(result), (Names{darwinn::kCustomOpName, "CPU", darwinn::kCustomOpName, "E"}));
  const auto& ops = result.subgraphs[0].operators;
  EXPECT_EQ(names(result, ops[0].outputs), (Names{"t1", "t2"}));
  EXPECT_EQ(names(result, ops[2].inputs), (Names{"t1", "t3"}));  // by number, not by use
}

// The part needs something from the CPU that stands behind the part's first operator in the file.
TEST(CompiledModel, OperatorsOfTheCpuMoveInFrontOfAPartThatNeedsThem) {
  GraphBuilder graph(6, {0, 1}, {5});
  graph.op("A", {0}, {2}).op("CPU", {1}, {3}).op("B", {2, 3}, {4}).op("C", {4}, {5});
  const ir::Model result = must_compile(graph.model, {{0, 2, 3}});
  EXPECT_EQ(op_types(result), (Names{"CPU", darwinn::kCustomOpName}));
}

// The variable is read behind the assignment, which waits for the part; reading needs nothing else.
TEST(CompiledModel, VariablesAreReadAndAssignedInTheFilesOrder) {
  GraphBuilder graph(4, {0}, {3});
  graph.model.subgraphs[0].tensors[1].type = ir::DataType::kResource;
  graph.op("VAR_HANDLE", {}, {1}).op("A", {0}, {2}).op("ASSIGN_VARIABLE", {1, 2}, {}).op("READ_VARIABLE", {1}, {3});
  const ir::Model result = must_compile(graph.model, {{1}});
  EXPECT_EQ(op_types(result), (Names{"VAR_HANDLE", darwinn::kCustomOpName, "ASSIGN_VARIABLE", "READ_VARIABLE"}));
}

TEST(CompiledModel, StatesAreInputsOfTheOp) {
  GraphBuilder graph(4, {0}, {3});
  graph.op("LSTM", {0, 1, -1, 2}, {3});
  graph.model.subgraphs[0].tensors[1].is_variable = true;
  graph.model.subgraphs[0].tensors[2].is_variable = true;
  const ir::Model result = must_compile(graph.model, {{0}});
  EXPECT_EQ(result.subgraphs[0].operators[0].inputs, (Numbers{0, 1, 2}));
  EXPECT_TRUE(result.subgraphs[0].tensors[1].is_variable);
  EXPECT_EQ(result.subgraphs[0].inputs, (Numbers{0}));
}

TEST(CompiledModel, ResultsThatTheModelReturnsOrOthersReadAreOutputs) {
  GraphBuilder graph(5, {0}, {2, 1});
  graph.op("A", {0}, {1}).op("B", {1}, {2}).op("CPU", {2}, {3}).op("C", {1}, {4});
  const ir::Model result = must_compile(graph.model, {{0, 1, 3}});
  EXPECT_EQ(names(result, result.subgraphs[0].operators[0].outputs), (Names{"t1", "t2"}));  // nobody wants t4
  EXPECT_EQ(names(result, result.subgraphs[0].outputs), (Names{"t2", "t1"}));
}

TEST(CompiledModel, MetadataOfTheConversionIsDropped) {
  GraphBuilder graph(2, {0}, {1});
  graph.op("A", {0}, {1});
  for (const char* name : {"min_runtime_version", "TFLITE_METADATA", "CONVERSION_METADATA"}) {
    graph.model.buffers.emplace_back();
    graph.model.buffers.back().data = Bytes({static_cast<std::uint8_t>(name[0])});
    graph.model.metadata.push_back({name, static_cast<std::int32_t>(graph.model.buffers.size()) - 1});
  }
  graph.model.signatures = {{"serving_default", 0, {{"x", 0}}, {{"y", 1}}}};
  EmitOptions options;
  const ir::Model plain = must_compile(graph.model, {{0}});
  ASSERT_EQ(plain.metadata.size(), 1u);
  EXPECT_EQ(plain.metadata[0].name, "TFLITE_METADATA");
  EXPECT_EQ(plain.buffers[1].data.data()[0], 'T');
  EXPECT_TRUE(plain.signatures.empty());
  options.keep_signatures = true;
  options.remarks = {"one", "two"};
  const ir::Model result = must_compile(graph.model, {{0}}, options);
  EXPECT_EQ(result.signatures, graph.model.signatures);
  ASSERT_EQ(result.metadata.size(), 2u);
  EXPECT_EQ(result.metadata[1].name, kRemarksName);
  const auto text = result.buffers[2].data.span();
  EXPECT_EQ(std::string(text.begin(), text.end()), "one\ntwo\n");
}

TEST(CompiledModel, OtherSubgraphsStay) {
  GraphBuilder graph(2, {0}, {1});
  graph.op("A", {0}, {1});
  GraphBuilder other(3, {0}, {2});
  other.op("ADD", {0, 1}, {2});
  graph.model.buffers.emplace_back();
  graph.model.buffers.back().data = Bytes({5, 6, 7, 8});
  other.model.subgraphs[0].tensors[1].buffer = 1;
  graph.model.subgraphs.push_back(other.model.subgraphs[0]);
  const ir::Model result = must_compile(graph.model, {{0}});
  ASSERT_EQ(result.subgraphs.size(), 2u);
  EXPECT_EQ(ir::constant_data(result, result.subgraphs[1].tensors[1]).size(), 4u);
}

TEST(CompiledModel, WithoutPartsTheModelStaysWhatItComputes) {
  GraphBuilder graph(3, {0}, {2});
  graph.op("A", {0}, {1}).op("B", {1}, {2});
  EXPECT_EQ(op_types(must_compile(graph.model, {})), (Names{"A", "B"}));
}

TEST(CompiledModel, RefusesPartsThatCannotBe) {
  GraphBuilder graph(4, {0}, {3});
  graph.op("A", {0}, {1}).op("CPU", {1}, {2}).op("B", {2}, {3});
  const ir::Model& model = graph.model;
  const auto error = [&](const std::vector<CompiledPart>& parts) {
    return compiled_model(model, parts).status().message();
  };
  EXPECT_NE(error({part_of(model, {0, 2})}).find("needs what is computed from its own results"), std::string::npos);
  EXPECT_NE(error({part_of(model, {0}), part_of(model, {0})}).find("in two parts"), std::string::npos);
  EXPECT_NE(error({{{}, {}, {}, {}}}).find("no operators"), std::string::npos);
  EXPECT_NE(error({{{7}, {}, {}, {}}}).find("operator 7"), std::string::npos);
  EXPECT_NE(error({{{0}, {-2}, {99}, {}}}).find("tensor -2"), std::string::npos);
  EXPECT_FALSE(compiled_model({}, {}).ok());
}

}  // namespace
}  // namespace reef::emit

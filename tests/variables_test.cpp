// SPDX-License-Identifier: Apache-2.0
// Variables are read and assigned in the file's order, whatever is done to the model: simplified, rewritten, compiled,
// verified, cut into segments. No tensor leads from an ASSIGN_VARIABLE to a READ_VARIABLE behind it, so each stage that
// reorders or takes apart has to know.
#include <random>

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"
#include "compiler/partwise_evaluation.h"
#include "compiler/plan.h"
#include "compiler/verification.h"
#include "emit/compiled_model.h"
#include "execute/cpu/evaluate.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "learn/head.h"
#include "ops/dependencies.h"
#include "ops/settled_shapes.h"
#include "partition/segments.h"
#include "passes/simplify.h"
#include "quantized_model.h"
#include "rewrite_models.h"

namespace reef {
namespace {

using passes::chip_testing::Buffers;
using testing::QuantizedModel;

// a = conv(x); v := a; b = conv(v); v := b; y = a + v, and z = v as it was before. Without variables: the same by
// tensors alone.
struct Network {
  bool with_variables = true;
  QuantizedModel b = QuantizedModel();
  std::int32_t handle = -1;

  std::int32_t assigned_and_read(std::int32_t value) {
    if (!with_variables) return value;
    b.op("ASSIGN_VARIABLE", {handle, value}, {}, "AssignVariableOptions");
    return b.op("READ_VARIABLE", {handle}, {b.computed(b.shape(value), {})}, "ReadVariableOptions");
  }
  ir::Model finish() {
    const std::int32_t x = b.input({1, 8, 8, 8});
    if (with_variables) {
      handle = b.computed_plain({1}, ir::DataType::kResource, "handle");
      ir::Attributes names;
      names.set("container", std::string("c"));
      names.set("shared_name", std::string("v"));
      b.op("VAR_HANDLE", {}, {handle}, "VarHandleOptions", names);
    }
    const std::int32_t a = assigned_and_read(b.conv(x, 8, 3));
    const std::int32_t second = b.conv(a, 8, 3);
    const std::int32_t last = assigned_and_read(second);
    return b.finish({b.add(a, last), b.max_pool(a, 2, 2)});
  }
};

ir::Model with_variables() { return Network{.with_variables = true}.finish(); }
ir::Model without_variables() { return Network{.with_variables = false}.finish(); }

// What streaming networks do: a variable, filled with zeros once, holds the last rows of what came before.
ir::Model streaming() {
  QuantizedModel b;
  const std::int32_t x = b.input({1, 1, 8, 8});
  const std::int32_t handle = b.computed_plain({1}, ir::DataType::kResource, "handle");
  ir::Attributes once, names;
  once.set("init_subgraph_index", std::int64_t{1});
  names.set("container", std::string("c"));
  names.set("shared_name", std::string("rows"));
  b.op("CALL_ONCE", {}, {}, "CallOnceOptions", once);
  b.op("VAR_HANDLE", {}, {handle}, "VarHandleOptions", names);
  const std::int32_t rows = b.op("READ_VARIABLE", {handle}, {b.computed({1, 2, 8, 8}, {})}, "ReadVariableOptions");
  const std::int32_t all = b.concatenation({rows, x}, 1);
  const std::int32_t kept = b.op("SLICE", {all, b.ints({0, 1, 0, 0}), b.ints({1, 2, 8, 8})},
                                 {b.computed({1, 2, 8, 8}, {})}, "SliceOptions", {}, 2);
  b.op("ASSIGN_VARIABLE", {handle, kept}, {}, "AssignVariableOptions");
  ir::Model model = b.finish({b.conv(all, 8, 3)});
  ir::Subgraph& init = model.subgraphs.emplace_back();
  init.name = "init";
  init.tensors = {model.subgraphs[0].tensors[static_cast<std::size_t>(handle)],
                  model.subgraphs[0].tensors[static_cast<std::size_t>(kept)]};
  init.tensors[1].buffer = static_cast<std::int32_t>(model.buffers.size());
  model.buffers.emplace_back().data = Bytes(std::vector<std::uint8_t>(128, 7));
  for (const ir::Operator& op : model.subgraphs[0].operators) {
    if (op.type == "VAR_HANDLE" || op.type == "ASSIGN_VARIABLE") init.operators.push_back(op);
  }
  init.operators[0].outputs = {0};
  init.operators[1].inputs = {0, 1};
  EXPECT_TRUE(ir::verify(model).ok()) << ir::verify(model).message();
  return model;
}

// Two runs in a row: what the first one leaves in a variable is there in the second.
Buffers run_twice(const ir::Model& model, const Buffers& inputs) {
  const auto interpreter = cpu::prepared(std::make_shared<const ir::Model>(model));
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().message();
  Buffers results;
  for (int run = 0; run < 2 && interpreter.ok(); ++run) {
    const auto values = cpu::run_once(**interpreter, inputs);
    EXPECT_TRUE(values.ok()) << values.status().message();
    if (!values.ok()) return {};
    for (const cpu::Value& value : *values) results.push_back(value.bytes);
  }
  return results;
}

Buffers inputs_of(const ir::Model& model) {
  std::mt19937 random(3);
  return passes::chip_testing::random_inputs(model, random);
}

std::vector<std::int32_t> ops_of_type(const ir::Model& model, std::string_view type) {
  std::vector<std::int32_t> result;
  for (std::size_t i = 0; i < model.subgraphs[0].operators.size(); ++i) {
    if (model.subgraphs[0].operators[i].type == type) result.push_back(static_cast<std::int32_t>(i));
  }
  return result;
}

std::vector<compiler::VerifiedPart> convolutions_as_parts(const ir::Model& model) {
  std::vector<compiler::VerifiedPart> parts;
  for (const std::int32_t op : ops_of_type(model, "CONV_2D")) {
    const auto border = ops::Dependencies(model).border({&op, 1});
    parts.push_back({{op}, border.inputs, border.outputs});
  }
  return parts;
}

TEST(Variables, TheModelComputesWhatItDoesWithoutThem) {
  const ir::Model model = with_variables();
  EXPECT_EQ(run_twice(model, inputs_of(model)), run_twice(without_variables(), inputs_of(model)));
}

TEST(Variables, SimplifyingAndRewritingKeepTheOrder) {
  for (const ir::Model& model : {with_variables(), streaming()}) {
    const Buffers inputs = inputs_of(model), expected = run_twice(model, inputs);
    const std::size_t reads = ops_of_type(model, "READ_VARIABLE").size();
    ir::Model simplified = model;
    ASSERT_TRUE(passes::simplify(simplified).ok());
    EXPECT_EQ(ops_of_type(simplified, "READ_VARIABLE").size(), reads);
    EXPECT_EQ(run_twice(simplified, inputs), expected);
    const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(model), {});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(ops_of_type(*plan->model, "ASSIGN_VARIABLE").size(), reads);
    EXPECT_EQ(run_twice(*plan->model, inputs), expected);
  }
}

// Operators of the compiled file in the order in which TFLite runs them.
TEST(Variables, CompiledModelsKeepTheOrder) {
  const ir::Model model = with_variables();
  std::vector<emit::CompiledPart> parts;
  for (const compiler::VerifiedPart& part : convolutions_as_parts(model)) {
    parts.push_back({part.ops, part.inputs, part.outputs, {}});
  }
  ASSERT_EQ(parts.size(), 2u);
  const auto compiled = emit::compiled_model(model, parts);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  std::string order;
  for (const ir::Operator& op : compiled->subgraphs[0].operators) {
    if (op.type.ends_with("_VARIABLE")) order += op.type[0];
    if (op.is_custom()) order += '-';
  }
  EXPECT_EQ(order, "-AR-AR");
}

// `reef verify` computes the source with the compiled operators in the chip's arithmetic.
TEST(Variables, VerifyingKeepsTheOrderAndTheValues) {
  const ir::Model model = with_variables(), plain = without_variables();
  const Buffers inputs = inputs_of(model);
  const std::vector<int> generations(2, reference::kReefGeneration);
  const auto found = compiler::evaluate_with_parts(model, convolutions_as_parts(model), generations, inputs);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const auto expected = compiler::evaluate_with_parts(plain, convolutions_as_parts(plain), generations, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_EQ(*found, *expected);
}

TEST(Variables, VerifyingInitializesThem) {
  const ir::Model model = streaming();
  const std::vector<int> generations(1, reference::kReefGeneration);
  const auto found = compiler::evaluate_with_parts(model, convolutions_as_parts(model), generations, inputs_of(model));
  EXPECT_TRUE(found.ok()) << found.status().message();
}

// A variable that only ever gets one shape has that shape, so that what is behind it can be on the chip.
TEST(Variables, SizesBehindThemAreKnownWhereAllAssignmentsAgree) {
  const auto chip_ops = [](ir::Model model) {
    ops::settle_shapes(model);
    const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(std::move(model)), {});
    EXPECT_TRUE(plan.ok());
    std::vector<std::string> types;
    for (std::size_t i = 0; plan.ok() && i < plan->assessment.ops.size(); ++i) {
      if (plan->assessment.ops[i].fits()) types.push_back(plan->model->subgraphs[0].operators[i].type);
    }
    return types;
  };
  EXPECT_EQ(chip_ops(streaming()), (std::vector<std::string>{"CONCATENATION", "SLICE", "CONV_2D"}));
  ir::Model other = streaming();  // at the beginning it has another size than later
  other.subgraphs[1].tensors[1].shape = {1, 4, 8, 4};
  EXPECT_TRUE(chip_ops(std::move(other)).empty());
  ir::Model growing = streaming();  // what is declared to be two rows is three
  for (ir::Operator& op : growing.subgraphs[0].operators) {
    if (op.type == "ASSIGN_VARIABLE") {
      const auto all = static_cast<std::size_t>(growing.subgraphs[0].operators[3].outputs[0]);
      growing.subgraphs[0].tensors[all].shape = {1, 2, 8, 8};
      op.inputs[1] = static_cast<std::int32_t>(all);
    }
  }
  EXPECT_TRUE(chip_ops(std::move(growing)).empty());
}

// Each segment runs in an interpreter of its own, which knows nothing of the others' variables.
TEST(Variables, SegmentsAreNotCutBetweenOperatorsThatShareOne) {
  const ir::Model model = with_variables();
  const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(model), {});
  ASSERT_TRUE(plan.ok());
  const std::vector<std::int32_t> reads = ops_of_type(*plan->model, "READ_VARIABLE");
  const auto two = partition::cut_segments(*plan->model, plan->assessment, *plan->costs, 2);
  ASSERT_TRUE(two.ok()) << two.status().message();
  ASSERT_FALSE(reads.empty());
  EXPECT_GT(two->at(1).ops.front(), reads.back());
  const auto count = static_cast<int>(plan->model->subgraphs[0].operators.size());
  const auto all = partition::cut_segments(*plan->model, plan->assessment, *plan->costs, count);
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.status().message().find("share a variable"), std::string::npos) << all.status().message();
}

// `reef learn split` makes two files, and a variable of one is nothing to the other.
TEST(Variables, HeadsAreNotCutOffBetweenOperatorsThatShareOne) {
  const ir::Model model = with_variables();
  learn::Head head;
  head.embedding =
      model.subgraphs[0].operators[static_cast<std::size_t>(ops_of_type(model, "READ_VARIABLE")[0])].outputs[0];
  const auto parts = learn::split(model, head);
  ASSERT_FALSE(parts.ok());
  EXPECT_NE(parts.status().message().find("share a variable"), std::string::npos) << parts.status().message();
}

// What an operator reads from a variable tensor is what it held then: a later operator writes it.
ir::Model reads_before_it_writes(const char* type) {
  QuantizedModel b;
  const std::int32_t x = b.input({1, 4, 4, 8});
  const std::int32_t state = b.computed({1, 4, 4, 8}, {}, "state");
  b.tensor(state).is_variable = true;
  const bool is_resize = std::string_view(type).starts_with("RESIZE");
  const std::int32_t before = is_resize ? b.resize(type, state, 4, 4) : b.dequantize(state);
  b.op("RELU", {x}, {state});
  return b.finish({b.add(is_resize ? before : b.quantize(before, {}), x)});
}

TEST(Variables, WhatWasReadIsNotReadAgainLater) {
  for (const char* type : {"RESIZE_NEAREST_NEIGHBOR", "DEQUANTIZE"}) {
    const ir::Model model = reads_before_it_writes(type);
    const Buffers inputs = inputs_of(model);
    cpu::InterpreterOptions one_by_one;
    one_by_one.one_by_one = true;
    const auto interpreter = cpu::prepared(std::make_shared<const ir::Model>(model), one_by_one);
    ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
    const auto values = cpu::run_once(**interpreter, inputs);
    ASSERT_TRUE(values.ok());
    const Buffers joined = run_twice(model, inputs);
    EXPECT_EQ(joined[0], values->at(0).bytes) << type;  // ops joined
    ir::Model simplified = model;
    ASSERT_TRUE(passes::simplify(simplified).ok());
    EXPECT_EQ(run_twice(simplified, inputs), joined) << type;
    const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(model), {});
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(run_twice(*plan->model, inputs), joined) << type;
  }
}

// What is not a function of its operands is never computed ahead of time: states, and ops that this version does not
// know, random numbers among them.
TEST(Variables, NothingButFunctionsIsFolded) {
  for (const char* type :
       {"RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL", "MULTINOMIAL", "HASHTABLE_FIND", "SomeCustomOp"}) {
    QuantizedModel b;
    const std::int32_t x = b.input({1, 4});
    const std::int32_t made = b.op(type, {b.ints({1, 4})}, {b.computed({1, 4}, {})});
    ir::Model model = b.finish({b.add(x, b.unary("RELU", made))});
    const auto count = model.subgraphs[0].operators.size();
    const auto plan = compiler::make_plan(std::make_shared<const ir::Model>(model), {});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(ops_of_type(*plan->model, type).size(), 1u) << type;
    EXPECT_EQ(ops_of_type(*plan->model, "RELU").size(), 1u) << type;
    ASSERT_TRUE(passes::simplify(model).ok());
    EXPECT_EQ(ops_of_type(model, type).size(), 1u) << type;
    EXPECT_EQ(model.subgraphs[0].operators.size(), count) << type;
  }
  ir::Model model = with_variables();
  const auto count = model.subgraphs[0].operators.size();
  ASSERT_TRUE(passes::simplify(model).ok());
  EXPECT_EQ(model.subgraphs[0].operators.size(), count);
}

using VariablesCommandLine = testing::CommandLine;

TEST_F(VariablesCommandLine, ACompiledModelIsVerified) {
  const std::string source = (folder_ / "m.tflite").string(), compiled = (folder_ / "m_edgetpu.tflite").string();
  for (const ir::Model& model : {with_variables(), streaming()}) {
    const auto bytes = tflite::write_model(model);
    ASSERT_TRUE(bytes.ok() && write_file(source, *bytes).ok());
    const testing::Outcome made = testing::reef("compile " + source + " -o " + folder_.string());
    constexpr int kNothingOnChip = 3;  // of the streaming model, whose operators wait for a variable
    ASSERT_TRUE(made.exit_code == 0 || made.exit_code == kNothingOnChip) << made.text;
    const testing::Outcome verified = testing::reef("verify " + source + " " + compiled);
    EXPECT_EQ(verified.exit_code, 0) << verified.text;
  }
}

}  // namespace
}  // namespace reef

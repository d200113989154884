// SPDX-License-Identifier: Apache-2.0
// What Reef computes ahead of time is what the model would have computed: every case that was recorded from a current
// TFLite runtime (tests/vectors) becomes a model whose inputs are constants, goes through each stage that folds them,
// and must still give the recorded results. Rules of another release show as wrong numbers: 2.9 takes the weights of a
// FULLY_CONNECTED with a scale per channel for zeros, rounds MEAN and SUM otherwise, and lets a leading NaN win.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/file.h"
#include "command_line.h"
#include "compiler/plan.h"
#include "dense_per_channel.h"
#include "execute/cpu/evaluate.h"
#include "formats/numpy/npy.h"
#include "formats/tflite/operator_codes.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"
#include "learn/head_runner.h"
#include "passes/rewrite.h"
#include "passes/simplify.h"
#include "quantize/quantize.h"
#include "vector_case.h"

namespace reef::testing {
namespace {

ir::Operator named(const char* type) {
  ir::Operator result;
  result.type = type;
  result.builtin_code = tflite::builtin_code(type);
  return result;
}

// Stacks a computed tensor and a new input of its kind, so that it is neither an output nor without a reader.
void keep_in_use(ir::Subgraph& graph, std::int32_t& output) {
  ir::Tensor beside = graph.tensors[static_cast<std::size_t>(output)];
  beside.name += "/beside";
  beside.buffer = 0;
  ir::Tensor both = beside;
  both.name += "/both";
  std::vector<std::int32_t> shape(both.shape.begin(), both.shape.end());
  shape.insert(shape.begin(), 2);
  both.shape = ir::Shape(shape);
  const auto first = static_cast<std::int32_t>(graph.tensors.size());
  graph.tensors.push_back(std::move(beside));
  graph.tensors.push_back(std::move(both));
  graph.inputs.push_back(first);
  ir::Operator pack = named("PACK");
  pack.options_type = "PackOptions";
  pack.attributes.set("values_count", std::int64_t{2});
  pack.attributes.set("axis", std::int64_t{0});
  pack.inputs = {output, first};
  pack.outputs = {first + 1};
  graph.operators.push_back(std::move(pack));
  output = first + 1;
}

// A float input that passes through: quantizers want a model that computes something in float.
void add_float_branch(ir::Subgraph& graph) {
  const auto first = static_cast<std::int32_t>(graph.tensors.size());
  for (const char* name : {"float_in", "float_out"}) {
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = name;
    tensor.shape = {1, 4};
  }
  ir::Operator relu = named("RELU");
  relu.inputs = {first};
  relu.outputs = {first + 1};
  graph.operators.push_back(std::move(relu));
  graph.inputs.push_back(first);
  graph.outputs.push_back(first + 1);
}

// The case with constants for inputs; nothing where it cannot be said so (states, several runs, shapes that change).
std::optional<ir::Model> with_constant_inputs(const VectorCase& vector) {
  if (vector.runtime_refused || vector.invocations != 1 || vector.release != ops::TfliteRelease::kCurrent) return {};
  auto read = tflite::read_model(vector.model);
  if (!read.ok() || !ir::verify(*read).ok() || read->subgraphs.size() != 1) return {};
  ir::Model model = std::move(*read);
  model.signatures.clear();
  ir::Subgraph& graph = model.subgraphs[0];
  if (graph.inputs.size() != vector.inputs.size() || graph.outputs.size() != vector.outputs.size()) return {};
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(graph.inputs[i])];
    if (tensor.buffer != 0 || tensor.shape != vector.inputs[i].shape || vector.inputs[i].data.empty()) return {};
    tensor.shape_signature.clear();
    tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(vector.inputs[i].data.data());
    model.buffers.emplace_back().data = Bytes(std::vector<std::uint8_t>(bytes, bytes + vector.inputs[i].data.size()));
  }
  graph.inputs.clear();
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    ir::Tensor& tensor = graph.tensors[static_cast<std::size_t>(graph.outputs[i])];
    if (tensor.shape != vector.outputs[i].shape || tensor.is_variable || vector.outputs[i].data.empty()) return {};
    tensor.shape_signature.clear();
    keep_in_use(graph, graph.outputs[i]);
  }
  if (!ir::verify(model).ok()) return {};
  return model;
}

// Runs it with zeros for the inputs that are left, and compares the first half of each output with the recording.
Status gives_recorded_outputs(const ir::Model& model, const VectorCase& vector) {
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(std::make_shared<const ir::Model>(model)));
  REEF_RETURN_IF_ERROR(interpreter->invoke());
  for (std::size_t i = 0; i < vector.outputs.size(); ++i) {
    const ops::Tensor& got = interpreter->output(static_cast<int>(i));
    const RecordedTensor& want = vector.outputs[i];
    REEF_REQUIRE(got.bytes == 2 * want.data.size(), "output {} has {} bytes", i, got.bytes);
    REEF_RETURN_IF_ERROR(compare(want, got.type, want.shape, got.data, vector.float_tolerance));
  }
  return ok_status();
}

// The operator that was recorded is gone, and constants are left.
bool is_folded(const ir::Model& model, std::size_t outputs) {
  const auto& operators = model.subgraphs[0].operators;
  return operators.size() == outputs &&
         std::all_of(operators.begin(), operators.end(), [](const ir::Operator& op) { return op.type == "PACK"; });
}

struct Tally {
  int folded = 0, failed = 0;
  std::map<std::string, int> by_op;  // folded

  void judge(const std::string& op, const VectorCase& vector, const Status& status, bool is_folded) {
    folded += is_folded ? 1 : 0;
    by_op[op] += is_folded ? 1 : 0;
    if (status.ok()) return;
    if (++failed <= 12) ADD_FAILURE() << op << " " << vector.name << ": " << status.message();
  }
};

template <typename Use>
void for_each_case(const Use& use) {
  for (const auto& entry : std::filesystem::directory_iterator(REEF_SOURCE_DIR "/tests/vectors")) {
    if (entry.path().extension() != ".jsonl") continue;
    const auto cases = read_vector_file(entry.path().string());
    ASSERT_TRUE(cases.ok()) << cases.status().message();
    for (const VectorCase& vector : *cases) {
      const std::optional<ir::Model> model = with_constant_inputs(vector);
      // Where PACK does not know the type, or the case itself is beyond us, there is nothing to compare.
      if (model && gives_recorded_outputs(*model, vector).ok()) use(entry.path().stem().string(), vector, *model);
    }
  }
}

TEST(FoldedConstants, SimplifyComputesWhatTheCurrentRuntimeRecorded) {
  Tally tally;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model) {
    ir::Model changed = model;
    const auto report = passes::simplify(changed);
    ASSERT_TRUE(report.ok()) << op << " " << vector.name << ": " << report.status().message();
    tally.judge(op, vector, gives_recorded_outputs(changed, vector), is_folded(changed, vector.outputs.size()));
  });
  EXPECT_EQ(tally.failed, 0);
  EXPECT_GT(tally.folded, 3000);
  for (const char* op : {"FULLY_CONNECTED", "MEAN", "SUM", "ARG_MAX", "ARG_MIN", "CONV_2D", "BATCH_MATMUL"}) {
    EXPECT_GT(tally.by_op[op], 10) << op;
  }
}

TEST(FoldedConstants, RewritesComputeWhatTheCurrentRuntimeRecorded) {
  Tally tally;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model) {
    passes::RewriteOptions options;
    options.none = true;
    options.enable = {"fold-constants"};
    options.evaluate = compiler::cpu_evaluator();
    ir::Model changed = model;
    const auto applied = passes::apply_rewrites(changed, options);
    ASSERT_TRUE(applied.ok()) << op << " " << vector.name << ": " << applied.status().message();
    tally.judge(op, vector, gives_recorded_outputs(changed, vector), is_folded(changed, vector.outputs.size()));
  });
  EXPECT_EQ(tally.failed, 0);
  EXPECT_GT(tally.folded, 1000);  // of integers only: floats stay computed
  for (const char* op : {"FULLY_CONNECTED", "MEAN", "SUM", "ARG_MAX"}) EXPECT_GT(tally.by_op[op], 5) << op;
}

// What `reef quantize` does without samples.
TEST(FoldedConstants, QuantizersOfWeightsComputeWhatTheCurrentRuntimeRecorded) {
  Tally tally;
  for_each_case([&](const std::string& op, const VectorCase& vector, const ir::Model& model) {
    if (op != "FULLY_CONNECTED" && op != "MEAN" && op != "SUM" && op != "ARG_MAX" && op != "ARG_MIN") return;
    // Of float models the weights are what changes.
    const auto is_float = [](const RecordedTensor& tensor) { return tensor.type == ir::DataType::kFloat32; };
    if (std::any_of(vector.inputs.begin(), vector.inputs.end(), is_float)) return;
    for (const quantize::Mode mode : {quantize::Mode::kFloat16, quantize::Mode::kDynamic}) {
      ir::Model changed = model;
      add_float_branch(changed.subgraphs[0]);
      ASSERT_TRUE(passes::simplify(changed).ok());
      quantize::QuantizeOptions options;
      options.mode = mode;
      const auto result = quantize::quantize(changed, nullptr, options);
      ASSERT_TRUE(result.ok()) << op << " " << vector.name << ": " << result.status().message();
      tally.judge(op, vector, gives_recorded_outputs(result->model, vector), true);
    }
  });
  EXPECT_EQ(tally.failed, 0);
  EXPECT_GT(tally.by_op["FULLY_CONNECTED"], 20);
}

// Scores of a learned head are those that the written model gives.
TEST(FoldedConstants, HeadsComputeAsTheCurrentRuntime) {
  ir::Model head = dense_per_channel();
  ir::Subgraph& graph = head.subgraphs[0];
  graph.tensors[1].buffer = 0;  // the layer's input is the embedding
  graph.inputs = {1};
  graph.outputs = {5};
  graph.operators.pop_back();
  ASSERT_TRUE(ir::verify(head).ok());
  learn::Embeddings embeddings;
  embeddings.dimension = 4;
  embeddings.add(std::vector<float>{1, 2, 3, 4}, 0);
  const auto scores = learn::run_head(head, embeddings);
  ASSERT_TRUE(scores.ok()) << scores.status().message();
  EXPECT_EQ(scores->at(0), kDensePerChannelOutputs);
}

class FoldedConstantsCommandLine : public CommandLine {
 protected:
  void SetUp() override {
    const auto bytes = tflite::write_model(dense_per_channel());
    ASSERT_TRUE(bytes.ok() && write_file(source_, *bytes).ok());
    ASSERT_TRUE(write_file(zeros_, std::vector<std::uint8_t>(8)).ok());
  }
  // "": without the option.
  std::vector<float> outputs_at_zero(const std::string& model, const std::string& release) {
    const Outcome outcome = reef(fmt::format("run {} --in {} --out {}{}", model, zeros_, folder_.string(),
                                             release.empty() ? "" : " --tflite " + release));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    const auto bytes = read_file((folder_ / "out0.bin").string(), 64);
    std::vector<float> values(2);
    if (bytes.ok() && bytes->size() == 8) std::memcpy(values.data(), bytes->data(), 8);
    return values;
  }
  const std::string source_ = (folder_ / "m.tflite").string(), zeros_ = (folder_ / "zeros.bin").string();
};

// 0 and 0 came out of `reef quantize --mode float16`, without a word.
TEST_F(FoldedConstantsCommandLine, DenseLayersWithAScalePerChannelKeepTheirValues) {
  const std::string made = (folder_ / "made.tflite").string();
  for (const char* command : {"quantize --mode float16", "quantize --mode dynamic", "convert"}) {
    const Outcome outcome = reef(fmt::format("{} {} -o {}", command, source_, made));
    ASSERT_EQ(outcome.exit_code, 0) << command << ": " << outcome.text;
    EXPECT_EQ(outputs_at_zero(made, ""), kDensePerChannelOutputs) << command;
  }
}

// The same constant as a range and as an 8-bit number: with zeros the output's range would not even reach it.
TEST_F(FoldedConstantsCommandLine, IntegerModelsHaveThemToo) {
  const std::string samples = (folder_ / "samples.npy").string(), made = (folder_ / "made.tflite").string();
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<float>(i - 32) / 32);
  const std::int64_t shape[] = {32, 1, 2};
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(values.data()), 4 * values.size());
  ASSERT_TRUE(numpy::save_npy(samples, ir::DataType::kFloat32, shape, bytes).ok());
  const Outcome outcome = reef(fmt::format("quantize {} --data {} --io float32 -o {}", source_, samples, made));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const std::vector<float> found = outputs_at_zero(made, "");
  constexpr float kStep = 0.05f;  // of the output: from about -2.6 to 7.4 in 256 steps
  EXPECT_NEAR(found[0], kDensePerChannelOutputs[0], kStep);
  EXPECT_NEAR(found[1], kDensePerChannelOutputs[1], kStep);
}

TEST_F(FoldedConstantsCommandLine, RunFollowsTheCurrentReleaseUnlessToldOtherwise) {
  EXPECT_EQ(outputs_at_zero(source_, ""), kDensePerChannelOutputs);
  EXPECT_EQ(outputs_at_zero(source_, "current"), kDensePerChannelOutputs);
  EXPECT_EQ(outputs_at_zero(source_, "2.9"), (std::vector<float>{0, 0}));
  const Outcome old = reef("run " + source_ + " --tflite 2.9");
  EXPECT_NE(old.text.find("without --tflite 2.9 it is computed as current releases do"), std::string::npos) << old.text;
  EXPECT_EQ(reef("run " + source_).text.find("note:"), std::string::npos);
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// Limits of time and memory, stage by stage (docs/limits.md). No test here measures time: a loop that never ends shows
// that a limit is kept, a cancelled budget that a stage looks at it, and memory is that of a child process.
#include <filesystem>
#include <memory>

#include <gtest/gtest.h>

#include "audit/audit.h"
#include "base/file.h"
#include "command_line.h"
#include "compiler/compile.h"
#include "data/dataset.h"
#include "execute/cpu/interpreter.h"
#include "execute/device/device.h"
#include "execute/reference/chip_reference.h"
#include "formats/numpy/npz.h"
#include "formats/tflite/writer.h"
#include "handwritten_packages.h"
#include "partition/check.h"
#include "partition/partition.h"
#include "process_memory.h"
#include "quantized_model.h"
#include "small_models.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

constexpr double kShort = 0.05;  // seconds

Budget ended() {
  const Budget budget{BudgetLimits{}};
  budget.cancel();
  return budget;
}

void expect_names(const Status& status, std::initializer_list<std::string_view> parts) {
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status.message();
  for (const std::string_view part : parts) {
    EXPECT_NE(status.message().find(part), std::string::npos) << part << " is not in: " << status.message();
  }
}

// Counts up for ever: the condition is always true.
ir::Model endless_loop() {
  ir::Model model;
  model.buffers.resize(2);
  model.buffers[1].data = Bytes({1});
  const auto value = [] { return tensor(ir::DataType::kFloat32, {4}); };
  ir::Subgraph main, condition, body;
  main.tensors = {value(), value()};
  main.inputs = {0};
  main.outputs = {1};
  main.operators = {op("WHILE", {0}, {1})};
  main.operators[0].attributes.set("cond_subgraph_index", std::int64_t{1});
  main.operators[0].attributes.set("body_subgraph_index", std::int64_t{2});
  main.operators[0].builtin_code = 119;
  main.operators[0].options_type = "WhileOptions";
  condition.tensors = {value(), tensor(ir::DataType::kBool, {1})};
  condition.tensors[1].buffer = 1;
  condition.inputs = {0};
  condition.outputs = {1};
  body.tensors = {value(), value()};
  body.inputs = {0};
  body.outputs = {1};
  body.operators = {op("ABS", {0}, {1})};
  body.operators[0].builtin_code = 101;
  model.subgraphs = {main, condition, body};
  return model;
}

// ---- Time ----

TEST(Limits, ALoopWithoutEndStopsAndSaysHowToGoOn) {
  cpu::InterpreterOptions options;
  options.budget = Budget({.seconds = kShort});
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(endless_loop()), options);
  ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
  ASSERT_TRUE((*interpreter)->prepare().ok());
  expect_names((*interpreter)->invoke(), {"0.05 s", "while running the model", "--time-limit SECONDS", "WHILE"});
  // The command's budget stays spent; a limit of each run begins anew.
  expect_names((*interpreter)->invoke(), {"0.05 s"});
}

TEST(Limits, AnInterpretersOwnLimitIsNamedAsSuch) {
  cpu::InterpreterOptions options;
  options.time_limit_seconds = kShort;
  auto interpreter = cpu::Interpreter::create(std::make_shared<const ir::Model>(endless_loop()), options);
  ASSERT_TRUE(interpreter.ok());
  ASSERT_TRUE((*interpreter)->prepare().ok());
  expect_names((*interpreter)->invoke(), {"time_limit_seconds"});
}

constexpr std::string_view kEndlessScalarLoop = "L1:\nscalar r5 = mov 1\nbranch to L1\n";

TEST(Limits, TheVirtualDeviceKeepsThem) {
  const auto package = device::LoadedPackage::load(
      stand_alone_package(joined({kAskForEightBytes, kEndlessScalarLoop, kSendLineAndEnd})));
  ASSERT_TRUE(package.ok()) << package.status().message();
  device::Device device({.budget = Budget({.seconds = kShort})});
  expect_names(device.run(*package, {}).status(), {"virtual device", "--time-limit"});
}

// One instruction of 3.6 billion steps on each tile.
constexpr std::string_view kLongInstruction = R"(
mesh_north tiles=all fill fill_value=1
  out narrow word 0: rep x60000, rep x60000
)";

TEST(Limits, AlsoWithinOneInstruction) {
  const auto package = device::LoadedPackage::load(
      stand_alone_package(joined({kAskForEightBytes, kLongInstruction, kFence, kSendLineAndEnd})));
  ASSERT_TRUE(package.ok()) << package.status().message();
  device::Device device({.max_cycles = std::int64_t{1} << 50, .budget = Budget({.seconds = kShort})});
  expect_names(device.run(*package, {}).status(), {"virtual device"});
}

TEST(Limits, TheAuditKeepsThem) {
  const auto package = stand_alone_package(joined({kAskForEightBytes, kLongInstruction, kSendLineAndEnd}));
  const auto report =
      audit::audit(package, {.max_steps = std::int64_t{1} << 50, .budget = Budget({.seconds = kShort})});
  expect_names(report.status(), {"auditing a compiled program", "--time-limit"});
}

ir::Model small_network() {
  QuantizedModel m;
  auto x = m.input({1, 8, 8, 4});
  for (int i = 0; i < 3; ++i) x = m.conv(x, 4, 3);
  return m.finish({x});
}

TEST(Limits, TheChipReferenceKeepsThem) {
  const ir::Model model = small_network();
  const ir::Subgraph& graph = model.subgraphs[0];
  const reference::TensorBytes given = {{graph.inputs[0], std::vector<std::uint8_t>(8 * 8 * 4)}};
  EXPECT_TRUE(reference::evaluate_tensors_as_chip(model, given, graph.outputs).ok());
  expect_names(reference::evaluate_tensors_as_chip(model, given, graph.outputs, {.budget = ended()}).status(),
               {"chip's arithmetic"});
  expect_names(
      reference::evaluate_tensors_as_chip(model, given, graph.outputs, {.budget = Budget({.bytes = 100})}).status(),
      {"chip reference", "--memory-limit MIB"});
}

// A dimension of 0 made the reference's loop over rows endless.
TEST(Limits, ASoftmaxWithoutElementsEnds) {
  QuantizedModel m;
  const auto x = m.input({1, 8});
  const ir::Model right = m.finish({m.softmax(x)});
  ir::Model model = right;
  for (ir::Tensor& each : model.subgraphs[0].tensors) each.shape = {1, 0};
  const auto result = reference::evaluate_tensors_as_chip(model, {{0, {}}}, model.subgraphs[0].outputs);
  EXPECT_EQ(result.status().code(), StatusCode::kInvalidInput) << result.status().message();
}

class CompileLimits : public CommandLine {
 protected:
  // Ends the budget when the compiler comes to `stage`; what it says then.
  std::string ended_at(const std::string& stage) {
    compiler::CompileOptions options;
    options.models = {(folder_ / "m.tflite").string()};
    options.out_dir = folder_.string();
    options.verify = compiler::Verify::kAlways;
    const Budget budget{BudgetLimits{}};
    options.budget = budget;
    options.progress = [&](std::string_view now, std::string_view, double) {
      if (now == stage) budget.cancel();
    };
    EXPECT_TRUE(tflite::save_model(small_network(), options.models[0]).ok());
    const compiler::CompileResult result = compiler::compile(options);
    EXPECT_FALSE(result.ok());
    EXPECT_FALSE(fs::exists(folder_ / "m_edgetpu.tflite"));
    return result.ok() ? "" : result.refusals[0].explanation;
  }
};

TEST_F(CompileLimits, ReachEveryStage) {
  EXPECT_NE(ended_at("plan").find("while planning"), std::string::npos);
  EXPECT_NE(ended_at("generate").find("while generating code"), std::string::npos);
  EXPECT_NE(ended_at("verify").find("while verifying the compiled code"), std::string::npos);
}

// ---- Work that grew with the square of the model ----

class CountingCosts : public partition::Costs {
 public:
  const partition::OpCost& op(std::int32_t) const override { return cost_; }
  std::int64_t tensor_bytes(std::int32_t) const override { return 4; }
  partition::PartCost part(std::span<const std::int32_t>, std::span<const std::int32_t>, std::span<const std::int32_t>,
                           std::int64_t) const override {
    ++parts;
    return {};
  }
  mutable std::int64_t parts = 0;  // predictions; there is at least one in every partitioning

 private:
  partition::OpCost cost_ = {};
};

ir::Model chain_of_floats(int count) {
  ir::Model model;
  model.buffers.resize(1);
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  for (int i = 0; i <= count; ++i) graph.tensors.push_back(tensor(ir::DataType::kFloat32, {1, 4}));
  for (int i = 0; i < count; ++i) graph.operators.push_back(op("ABS", {i}, {i + 1}));
  graph.inputs = {0};
  graph.outputs = {count};
  return model;
}

TEST(Limits, ExplainingAMillionOperatorsTakesBoundedWork) {
  const auto partitionings = [](int count, std::size_t* notes) {
    const ir::Model model = chain_of_floats(count);
    CountingCosts costs;
    const auto result = partition::partition(model, partition::assess(model, {}), costs, {});
    EXPECT_TRUE(result.ok());
    *notes = result->notes.size();
    return costs.parts;
  };
  std::size_t notes = 0;
  const std::int64_t of_each = partitionings(1000, &notes) / 1000;
  EXPECT_GT(of_each, 0);
  EXPECT_EQ(notes, 0u) << "all operators of a network of usual size are explained";
  // 40 times the operators must not take 1600 times the work. Each partitioning looks at all of them.
  constexpr std::int64_t kMany = 40'000, kMostLookedAt = std::int64_t{1} << 25;
  EXPECT_LE(partitionings(kMany, &notes) * kMany, (of_each + 1) * kMostLookedAt);
  EXPECT_EQ(notes, 1u) << "what was left out is said";
}

// ---- Memory ----

using CheckLimits = CommandLine;

// Generating code takes the square of the number of operators. The note shows that it was left out.
TEST_F(CheckLimits, CheckGeneratesCodeForModelsOfUsualSizeOnly) {
  for (const int count : {100, 6000}) {
    QuantizedModel model;
    std::int32_t x = model.input({1, 2, 2, 4});
    for (int i = 0; i < count; ++i) x = model.unary("RELU", x);
    const std::string path = (folder_ / "chain.tflite").string();
    ASSERT_TRUE(tflite::save_model(model.finish({x}), path).ok());
    const Outcome outcome = reef("check " + path);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(outcome.text.find("code was not generated for 6000 operators") != std::string::npos, count == 6000);
  }
}

class MemoryLimits : public CommandLine {
 protected:
  // One operator, a few hundred bytes of file: BROADCAST_TO makes `mib` MiB of one byte.
  std::string large_output(std::int32_t mib) {
    ir::Model model;
    model.buffers.resize(2);
    const std::int32_t sizes[] = {mib, 1 << 20};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(sizes);
    model.buffers[1].data = Bytes(std::vector<std::uint8_t>(bytes, bytes + sizeof(sizes)));
    ir::Subgraph& graph = model.subgraphs.emplace_back();
    graph.tensors = {tensor(ir::DataType::kInt8, {1, 1}), tensor(ir::DataType::kInt32, {2}),
                     tensor(ir::DataType::kInt8, {mib, 1 << 20})};
    graph.tensors[1].buffer = 1;
    graph.inputs = {0};
    graph.outputs = {2};
    graph.operators = {op("BROADCAST_TO", {0, 1}, {2})};
    graph.operators[0].builtin_code = 130;
    const std::string path = (folder_ / "large.tflite").string();
    EXPECT_TRUE(tflite::save_model(model, path).ok());
    return path;
  }
};

// The report made 24 bytes of every element of an output.
TEST_F(MemoryLimits, TheReportOfARunTakesNoMoreThanTheRun) {
  const std::string model = large_output(64);
  const ChildOutcome outcome = run_child({REEF_PROGRAM, "run", model, "--memory-limit", "100", "--top", "3"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_LT(outcome.most_resident_mib, 200) << outcome.text;
}

TEST_F(MemoryLimits, ARunThatNeedsMoreSaysHowMuch) {
  const ChildOutcome outcome = run_child({REEF_PROGRAM, "run", large_output(256), "--memory-limit", "100"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_LT(outcome.most_resident_mib, 100);
  EXPECT_NE(outcome.text.find("the memory limit of 100 MiB"), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("--memory-limit MIB"), std::string::npos) << outcome.text;
}

// Samples of zeros: a megabyte packed for every gigabyte.
class PackedArrays : public MemoryLimits {
 protected:
  static constexpr std::int64_t kSamples = 4096, kPixels = 16 * 16;
  std::string zeros() {
    numpy::NamedArray array{"x", {ir::DataType::kFloat32, {kSamples, 16, 16, 1}, {}}};
    array.array.data = Bytes(std::vector<std::uint8_t>(kSamples * kPixels * 4));
    const auto file = numpy::write_npz({&array, 1}, /*deflate=*/true);
    EXPECT_TRUE(file.ok());
    const std::string path = (folder_ / "zeros.npz").string();
    EXPECT_TRUE(write_file(path, *file).ok());
    return path;
  }
  static ir::Model model() {
    ir::Model model = chain_of_floats(1);
    for (ir::Tensor& each : model.subgraphs[0].tensors) each.shape = {1, 16, 16, 1};
    return model;
  }
};

TEST_F(PackedArrays, OnlyWhatIsAskedForIsUnpacked) {
  data::DatasetOptions options;
  options.path = zeros();
  options.limit = 2;
  options.budget = Budget({.bytes = 2 * kPixels * 4});
  const auto two = data::Dataset::open(options, model());
  ASSERT_TRUE(two.ok()) << two.status().message();
  EXPECT_EQ((*two)->size(), 2);
  EXPECT_NE((*two)->describe().find("2 of 4096 samples"), std::string::npos) << (*two)->describe();
  std::vector<std::byte> sample(kPixels * 4);
  EXPECT_TRUE((*two)->read(1, data::input_spec(model(), 0), sample).ok());
  options.limit = 3;
  expect_names(data::Dataset::open(options, model()).status(), {"array 'x'", "--memory-limit MIB"});
  options.limit = 2;
  options.shuffle_seed = 1;  // which two is not known before all are there
  EXPECT_FALSE(data::Dataset::open(options, model()).ok());
}

TEST_F(PackedArrays, AnArrayThatCannotBeWholeIsNotUnpacked) {
  numpy::Array array{ir::DataType::kUInt8, {1 << 20}, {}};
  array.data = Bytes(std::vector<std::uint8_t>(1 << 20));
  auto npy = numpy::write_npy(array.type, array.shape, array.data.span());
  ASSERT_TRUE(npy.ok());
  npy->resize(npy->size() - 1);
  const zip::NewMember member{"x.npy", *npy};
  const auto file = zip::write_archive({&member, 1}, /*deflate=*/true);
  ASSERT_TRUE(file.ok());
  const auto npz = numpy::Npz::open(Bytes(*file));
  ASSERT_TRUE(npz.ok());
  BudgetedBytes memory;
  const Status status = npz->read_rows("x", -1, Budget({.bytes = 1000}), memory).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidInput) << "it is cut off, which its header tells: " << status.message();
}

}  // namespace
}  // namespace reef::testing

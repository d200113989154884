// SPDX-License-Identifier: Apache-2.0
// The driver with code generators made for the test: some always have code, some only for small parts.
#include "compiler/compile.h"

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"
#include "compiler/google_text.h"
#include "formats/darwinn/reader.h"
#include "formats/darwinn/without_code.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;
using testing::QuantizedModel;

PartCode some_code() {
  PartCode code;
  code.package.executables.push_back(darwinn::new_executable(darwinn::ExecutableType::kStandAlone));
  return code;
}

// `length` convolutions, one behind the other.
ir::Model chain(int length, int channels = 8) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 16, 16, channels});
  for (int i = 0; i < length; ++i) {
    x = model.conv(x, channels, 3);
    model.name(x, "conv" + std::to_string(i));
  }
  return model.finish({x});
}

Result<PartCode> no_code(const PartProgram&) { return unsupported("there is no code for it"); }

class Compile : public ::testing::Test {
 protected:
  Compile() : folder_(fs::temp_directory_path() / ("reef_compile_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    options_.out_dir = folder_.string();
    options_.generate = [](const PartProgram&) { return some_code(); };
    options_.verify = Verify::kNever;  // some_code cannot run
    options_.plan.rewrites.none = true;
  }
  ~Compile() override { fs::remove_all(folder_); }

  void add(const std::string& name, const ir::Model& model) {
    options_.models.push_back((folder_ / name).string());
    EXPECT_TRUE(tflite::save_model(model, options_.models.back()).ok());
  }
  // Fails for parts of more operators than that, as for activations that do not fit.
  void compile_at_most(std::size_t operators) {
    options_.generate = [operators](const PartProgram& part) -> Result<PartCode> {
      if (part.ops.size() <= operators) return some_code();
      return Status(StatusCode::kResourceExhausted, "activations do not fit");
    };
  }
  bool exists(const std::string& name) const { return fs::exists(folder_ / name); }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
  CompileOptions options_;
};

TEST_F(Compile, WritesTheModelAndItsLog) {
  add("net.tflite", chain(3));
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  EXPECT_TRUE(result.has_all_code());
  const CompiledFile& file = result.runs.at(0).files.at(0);
  EXPECT_EQ(file.output, (folder_ / "net_edgetpu.tflite").string());
  const auto compiled = tflite::load_model(file.output);
  ASSERT_TRUE(compiled.ok()) << compiled.status().message();
  ASSERT_EQ(compiled->subgraphs[0].operators.size(), 1u);
  EXPECT_TRUE(darwinn::is_edge_tpu_op(compiled->subgraphs[0].operators[0]));
  EXPECT_TRUE(compiled->metadata.empty());
  EXPECT_EQ(file.output_bytes, static_cast<std::int64_t>(fs::file_size(file.output)));
  const auto log = read_file(file.log, 1 << 20);
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(std::string(log->span().begin(), log->span().end()),
            "Edge TPU Compiler version 16.0.384591198\nInput: " + file.input + "\nOutput: " + file.output +
                "\n\nOperator                       Count      Status\n\n"
                "CONV_2D                        3          Mapped to Edge TPU\n");
}

TEST_F(Compile, SameFilesSameBytes) {
  add("net.tflite", chain(2));
  options_.generate = generate_part;
  const auto bytes = [&] {
    EXPECT_TRUE(compile(options_).ok());
    const auto file = read_file((folder_ / "net_edgetpu.tflite").string(), 1 << 20);
    return std::vector<std::uint8_t>(file->span().begin(), file->span().end());
  };
  EXPECT_EQ(bytes(), bytes());
}

TEST_F(Compile, WhatIsWrittenWasTriedOut) {
  add("net.tflite", chain(2));
  options_.generate = generate_part;
  options_.verify = Verify::kWhenQuick;
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  const Verified& verified = result.runs.at(0).files.at(0).verified;
  EXPECT_TRUE(verified.done) << verified.why_not;
}

// One byte of the parameters is wrong, as a mistake in their layout would make it.
TEST_F(Compile, WrongCodeIsNotWritten) {
  add("net.tflite", chain(2));
  options_.generate = [](const PartProgram& part) -> Result<PartCode> {
    REEF_ASSIGN_OR_RETURN(PartCode code, generate_part(part));
    for (darwinn::Executable& executable : code.package.executables) {
      if (executable.parameters.empty()) continue;
      std::vector<std::uint8_t> bytes(executable.parameters.span().begin(), executable.parameters.span().end());
      bytes[bytes.size() / 2] ^= 0x40;
      executable.parameters = Bytes(std::move(bytes));
    }
    return code;
  };
  options_.verify = Verify::kAlways;
  const CompileResult refused = compile(options_);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.refusals[0].explanation.find("does not compute what the model says"), std::string::npos)
      << refused.refusals[0].explanation;
  EXPECT_FALSE(exists("net_edgetpu.tflite"));
  options_.verify = Verify::kNever;
  const CompileResult written = compile(options_);
  ASSERT_TRUE(written.ok());
  EXPECT_FALSE(written.runs.at(0).files.at(0).verified.done);
  EXPECT_TRUE(exists("net_edgetpu.tflite"));
}

TEST_F(Compile, AFileWithoutCodeSaysSo) {
  add("net.tflite", chain(2));
  options_.generate = no_code;
  options_.no_code = NoCode::kPackage;
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result.has_all_code());
  const auto compiled = tflite::load_model(result.runs[0].files[0].output);
  ASSERT_TRUE(compiled.ok());
  const auto options = darwinn::read_custom_options(compiled->subgraphs[0].operators[0].custom_options);
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_FALSE(darwinn::require_code(options->package).ok());
  ASSERT_EQ(compiled->metadata.size(), 1u);
  const auto text = compiled->buffers[at(compiled->metadata[0].buffer)].data.span();
  EXPECT_NE(std::string(text.begin(), text.end()).find("no machine code"), std::string::npos);
}

TEST_F(Compile, CodeCanBeRequired) {
  add("net.tflite", chain(2));
  options_.generate = no_code;
  options_.no_code = NoCode::kFail;
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.refusals[0].kind, Refusal::Kind::kFailed);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Compile, WhatDoesNotFitFailsWithoutASearch) {
  add("net.tflite", chain(20));
  compile_at_most(7);
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.refusals[0].explanation.find("activations do not fit"), std::string::npos);
  EXPECT_EQ(files(), 1u);
}

TEST_F(Compile, TheSearchFindsTheLongestInFewAttempts) {
  add("net.tflite", chain(60));
  compile_at_most(37);
  options_.search = true;
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  const CompiledFile& file = result.runs[0].files[0];
  EXPECT_EQ(file.plan.partition.chip_op_count(), 37);
  EXPECT_LE(file.attempts.size(), 8u);  // Google's search: 24
  const std::string text = console_text(options_, result, false);
  EXPECT_EQ(text.find("Searching for valid delegate with step 1\nTry to compile segment with 60 ops\n"
                      "Started a compilation timeout timer of 180 seconds.\n"
                      "ERROR: Restored original execution plan after delegate application failure.\n"
                      "Compilation failed: Compilation failed due to large activation tensors in model.\n"
                      "Compilation child process completed within timeout period.\nCompilation failed! \n"),
            0u)
      << text;
  EXPECT_NE(text.find("Try to compile segment with 37 ops\nIntermediate tensors: conv36\n"
                      "Started a compilation timeout timer of 180 seconds.\n\nModel compiled successfully in "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("Number of operations that will run on Edge TPU: 37\n"
                      "Number of operations that will run on CPU: 23\n"),
            std::string::npos)
      << text;
}

// A small part, an operator that does not fit, a long part.
ir::Model two_parts(int first, int second) {
  QuantizedModel model;
  std::int32_t x = model.input({1, 32, 32, 128});
  for (int i = 0; i < first; ++i) x = model.conv(x, 128, 3);
  x = model.unary("LEAKY_RELU", x, "LeakyReluOptions", {}, 2);
  for (int i = 0; i < second; ++i) x = model.conv(x, 128, 3);
  return model.finish({x});
}

TEST_F(Compile, ASearchAmongSeveralPartsShrinksTheLargest) {
  add("net.tflite", two_parts(10, 40));
  options_.search = options_.plan.partition.several_parts = options_.plan.rewrites.none = true;
  const CompileResult both = compile(options_);
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both.runs[0].files[0].ops.size(), 2u);
  compile_at_most(21);
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  EXPECT_EQ(result.runs[0].files[0].ops.size(), 1u);
  EXPECT_EQ(result.runs[0].files[0].plan.partition.chip_op_count(), 21);
}

TEST_F(Compile, TheSearchKeepsToItsStep) {
  add("net.tflite", chain(60));
  compile_at_most(37);
  options_.search = true;
  options_.search_step = 10;
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.runs[0].files[0].plan.partition.chip_op_count(), 30);
}

TEST_F(Compile, ASearchThatFindsNothingFails) {
  add("net.tflite", chain(5));
  compile_at_most(0);
  options_.search = true;
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.refusals[0].kind, Refusal::Kind::kFailed);
  const std::string text = console_text(options_, result, false);
  EXPECT_NE(text.find("Try to compile segment with 1 ops"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("Compilation failed! \n")) << text;
}

// The second model's layers compute so little that they wait for parameters that are not on the chip; the first's do
// not.
TEST_F(Compile, MemoryGoesWhereItSavesTime) {
  QuantizedModel busy, waiting;
  std::int32_t x = busy.input({1, 64, 64, 256});
  for (int i = 0; i < 8; ++i) x = busy.conv(x, 256, 3);
  add("busy.tflite", busy.finish({x}));
  x = waiting.input({1, 2, 2, 256});
  for (int i = 0; i < 8; ++i) x = waiting.conv(x, 256, 3);
  add("waiting.tflite", waiting.finish({x}));
  double predicted[2] = {};
  for (const auto policy : {partition::CachePolicy::kInOrder, partition::CachePolicy::kLeastTime}) {
    options_.plan.costs.cache_policy = policy;
    const CompileResult result = compile(options_);
    ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
    const std::vector<CompiledFile>& made = result.runs.at(0).files;
    const bool in_order = policy == partition::CachePolicy::kInOrder;
    EXPECT_EQ(made[0].cached_bytes > made[1].cached_bytes, in_order);
    for (const CompiledFile& file : made) predicted[in_order ? 0 : 1] += file.plan.partition.predicted_us;
  }
  EXPECT_LT(predicted[1], predicted[0]);
}

TEST_F(Compile, ModelsCompiledTogetherShareTokenAndMemory) {
  add("first.tflite", chain(3, 64));
  add("second.tflite", chain(2, 64));
  std::vector<PartProgram> seen;
  options_.generate = [&](const PartProgram& part) {
    seen.push_back(part);
    return some_code();
  };
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_NE(seen[0].caching_token, 0u);
  EXPECT_EQ(seen[0].caching_token, seen[1].caching_token);
  const std::vector<CompiledFile>& made = result.runs.at(0).files;
  ASSERT_EQ(made.size(), 2u);
  EXPECT_GT(made[0].cached_bytes, 3 * 64 * 64 * 9 - 1);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_GE(seen[i].cached_bytes_max, made[i].cached_bytes);
  EXPECT_EQ(made[0].remaining_bytes, made[1].remaining_bytes);
  const std::int64_t all = made[0].cached_bytes + made[1].cached_bytes + made[0].remaining_bytes;
  EXPECT_LE(all, std::int64_t{chip::kTiles} * chip::kWideLines * chip::kWideLineBytes);
  EXPECT_GT(all, std::int64_t{7} << 20);
  const std::string text = console_text(options_, result, false);
  EXPECT_NE(text.find("\nModels compiled successfully in "), std::string::npos) << text;
  EXPECT_NE(text.find("See the operation log file for individual operation details.\n\nInput model: "),
            std::string::npos)
      << text;
  EXPECT_TRUE(exists("first_edgetpu.tflite") && exists("second_edgetpu.tflite"));
}

TEST_F(Compile, TwoModelsOfOneNameAreRefused) {
  fs::create_directories(folder_ / "other");
  add("net.tflite", chain(1));
  add("other/net.tflite", chain(2));
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.refusals[0].explanation.find("would both become"), std::string::npos);
  EXPECT_FALSE(exists("net_edgetpu.tflite"));
}

TEST_F(Compile, SegmentsAreModelsOfTheirOwn) {
  add("net.tflite", chain(9));
  options_.segments = 3;
  std::set<std::uint64_t> tokens;
  options_.generate = [&](const PartProgram& part) {
    tokens.insert(part.caching_token);
    return some_code();
  };
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  ASSERT_EQ(result.runs.size(), 3u);
  EXPECT_EQ(tokens.size(), 3u);    // parameters of the one overwrite those of the other on a chip that runs both
  std::string produced = "input";  // what one segment returns, the next reads
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string name = "net_segment_" + std::to_string(i) + "_of_3";
    EXPECT_EQ(result.runs[i].files.at(0).input, name + ".tflite");
    EXPECT_TRUE(exists(name + "_edgetpu.log"));
    const auto segment = tflite::load_model((folder_ / (name + "_edgetpu.tflite")).string());
    ASSERT_TRUE(segment.ok()) << segment.status().message();
    const ir::Subgraph& graph = segment->subgraphs[0];
    ASSERT_EQ(graph.inputs.size(), 1u);
    EXPECT_EQ(graph.tensors[at(graph.inputs[0])].name, produced);
    produced = graph.tensors[at(graph.outputs.at(0))].name;
  }
  EXPECT_EQ(produced, "conv8");
}

TEST_F(Compile, RefusesWhatCannotBe) {
  add("net.tflite", chain(2));
  const auto explanation = [&](auto change) {
    CompileOptions options = options_;
    change(options);
    const CompileResult result = compile(options);
    EXPECT_FALSE(result.ok());
    EXPECT_EQ(files(), 1u);
    return result.ok() ? "" : result.refusals[0].explanation;
  };
  const auto expect = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  expect(explanation([](auto& o) { o.out_dir = "/nowhere/at all"; }), "mkdir -p '/nowhere/at all'");
  expect(explanation([](auto& o) { o.out_dir = o.models[0] + "/"; }), "is not a folder");
  expect(explanation([](auto& o) { o.out_dir = o.models[0]; }), "would replace the input");
  expect(explanation([](auto& o) { o.segments = 3; }), "only 2 operators");
  expect(explanation([](auto& o) { o.plan.partition.intermediate_tensors = {"nothing"}; }), "nothing");
  expect(explanation([](auto& o) { o.models.push_back("absent.tflite"); }), "absent.tflite");
  expect(explanation([](auto& o) { o.timeout_seconds = 1e-9; }), "--timeout_sec");
  expect(explanation([](auto& o) { o.plan.rewrites.enable = {"no-such-rewrite"}; }), "no-such-rewrite");
}

// The whole model takes longer than is allowed, shorter beginnings do not.
TEST_F(Compile, EachAttemptHasTheWholeTime) {
  add("net.tflite", chain(4));
  options_.timeout_seconds = 0.5;
  options_.generate = [](const PartProgram& part) -> Result<PartCode> {
    if (part.ops.size() == 4) std::this_thread::sleep_for(std::chrono::milliseconds(600));
    return some_code();
  };
  const CompileResult alone = compile(options_);
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.refusals[0].kind, Refusal::Kind::kTimeout);
  options_.search = true;
  const CompileResult searched = compile(options_);
  ASSERT_TRUE(searched.ok()) << searched.refusals[0].explanation;
  const CompiledFile& file = searched.runs[0].files[0];
  EXPECT_EQ(file.plan.partition.chip_op_count(), 3);
  EXPECT_TRUE(file.attempts[0].is_late);
  EXPECT_NE(console_text(options_, searched, false).find("0.5 seconds were not enough"), std::string::npos);
}

TEST_F(Compile, AllFilesAreWrittenOrNone) {
  add("a.tflite", chain(1));
  add("b.tflite", chain(2));
  fs::create_directories(folder_ / "b_edgetpu.log");  // in the way of the last file
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.refusals[0].explanation.find("b_edgetpu.log"), std::string::npos) << result.refusals[0].explanation;
  EXPECT_EQ(files(), 3u);
}

TEST_F(Compile, OutputsThatNoOperatorComputesAreNotCut) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 8, 8, 4});
  add("net.tflite", model.finish({model.conv(model.conv(x, 4), 4), x}));
  options_.segments = 2;
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.refusals[0].explanation.find("is one of its inputs"), std::string::npos)
      << result.refusals[0].explanation;
}

TEST_F(Compile, FloatModelsAreAnsweredWithTheirTensors) {
  QuantizedModel model;
  const std::int32_t x = model.float_input({1, 8});
  add("net.tflite", model.finish({model.op("RELU", {x}, {model.computed_plain({1, 8}, ir::DataType::kFloat32, "y")})}));
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.refusals[0].kind, Refusal::Kind::kNotQuantized);
  for (const char* words : {"0 'float_input' float32[1, 8]", "1 'y'", "reef quantize MODEL --data"}) {
    EXPECT_NE(result.refusals[0].explanation.find(words), std::string::npos) << result.refusals[0].explanation;
  }
  EXPECT_EQ(console_text(options_, result, false), "Invalid model: " + options_.models[0] + "\nModel not quantized\n");
}

TEST_F(Compile, WhatIsCompiledIsNotCompiledAgain) {
  add("net.tflite", chain(1));
  ASSERT_TRUE(compile(options_).ok());
  options_.models = {(folder_ / "net_edgetpu.tflite").string()};
  const CompileResult result = compile(options_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.refusals[0].kind, Refusal::Kind::kAlreadyCompiled);
}

TEST_F(Compile, AModelThatTheChipCannotRunIsStillWritten) {
  QuantizedModel model;
  add("net.tflite", model.finish({model.arg_max(model.input({1, 10}))}));
  const CompileResult result = compile(options_);
  ASSERT_TRUE(result.ok()) << result.refusals[0].explanation;
  EXPECT_TRUE(result.has_all_code());
  EXPECT_TRUE(exists("net_edgetpu.tflite"));
  const std::string text = console_text(options_, result, true);
  EXPECT_NE(text.find("Number of Edge TPU subgraphs: 0\nTotal number of operations: 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Number of operations that will run on Edge TPU: 0\n"), std::string::npos) << text;
}

TEST(GoogleText, Sizes) {
  EXPECT_EQ(size_text(0), "0.00B");
  EXPECT_EQ(size_text(768), "768.00B");
  EXPECT_EQ(size_text(6400), "6.25KiB");
  EXPECT_EQ(size_text(109312), "106.75KiB");
  EXPECT_EQ(size_text(4047503), "3.86MiB");
}

}  // namespace
}  // namespace reef::compiler

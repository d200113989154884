// SPDX-License-Identifier: Apache-2.0
// One call from a float model to a compiled file gives the bytes that two commands with a file in between give, and
// writes everything or nothing.
#include "compiler/pipeline.h"

#include <filesystem>
#include <set>

#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file.h"

namespace reef::compiler {
namespace {

namespace fs = std::filesystem;

const std::string kModels = REEF_SOURCE_DIR "/models/";

class PipelineTest : public ::testing::Test {
 protected:
  PipelineTest() : folder_(fs::temp_directory_path() / ("reef_pipeline_test_" + std::to_string(::getpid()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "one");
    fs::create_directories(folder_ / "two");
  }
  ~PipelineTest() override { fs::remove_all(folder_); }

  PipelineRequest request(const std::string& model, const std::string& folder) const {
    PipelineRequest request;
    request.compile.models = {model};
    request.compile.out_dir = (folder_ / folder).string();
    request.quantize.data.path = kModels + "images";
    request.quantize.data.use = data::Use::kCalibration;
    request.quantize.data.preprocess = "unit";
    request.quantize.how.automatic_ranges = false;
    return request;
  }
  // A file that was written. The log is not compared: it names the folder.
  std::string content(const std::string& folder, const std::string& name) const {
    const auto bytes = read_file((folder_ / folder / name).string(), 1 << 30);
    EXPECT_TRUE(bytes.ok()) << bytes.status().message();
    return bytes.ok() ? std::string(bytes->span().begin(), bytes->span().end()) : "";
  }
  std::set<std::string> names(const std::string& folder) const {
    std::set<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder_ / folder)) result.insert(entry.path().filename().string());
    return result;
  }

  fs::path folder_;
};

class OfAnyFormat : public PipelineTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(OfAnyFormat, EqualsQuantizingToAFileAndCompilingThat) {
  const std::string model = kModels + GetParam();
  const std::string int8 = fs::path(GetParam()).stem().string() + "_int8";
  const PipelineRequest whole = request(model, "one");
  const auto result = run_pipeline(whole);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_TRUE(result->compiled.ok()) << result->compiled.refusals[0].explanation;
  EXPECT_EQ(names("one"), (std::set<std::string>{int8 + ".tflite", int8 + "_edgetpu.tflite", int8 + "_edgetpu.log"}));

  QuantizeRequest quantize = whole.quantize;
  quantize.model = model;
  quantize.output = (folder_ / "two" / (int8 + ".tflite")).string();
  ASSERT_TRUE(quantize_file(quantize).ok());
  CompileOptions compile = whole.compile;
  compile.models = {quantize.output};
  compile.out_dir = (folder_ / "two").string();
  ASSERT_TRUE(compiler::compile(compile).ok());
  EXPECT_EQ(content("one", int8 + ".tflite"), content("two", int8 + ".tflite"));
  EXPECT_EQ(content("one", int8 + "_edgetpu.tflite"), content("two", int8 + "_edgetpu.tflite"));
}

INSTANTIATE_TEST_SUITE_P(Pipeline, OfAnyFormat, ::testing::Values("reef_creatures_float.tflite", "cifar_resnet8.onnx"));

TEST_F(PipelineTest, WritesNothingWhenTheCompilerRefuses) {
  PipelineRequest refused = request(kModels + "reef_creatures_float.tflite", "one");
  int quantized = 0;
  refused.quantized = [&](const QuantizeRequest&, const QuantizedModel&) { ++quantized; };
  refused.compile.admit = [](const CompiledFile&) -> Status { return invalid_input("not this one"); };
  const auto result = run_pipeline(refused);
  ASSERT_TRUE(result.ok()) << result.status().message();
  ASSERT_EQ(result->compiled.refusals.size(), 1u);
  EXPECT_NE(result->compiled.refusals[0].explanation.find("not this one"), std::string::npos);
  EXPECT_EQ(quantized, 1);
  EXPECT_TRUE(names("one").empty());
}

TEST_F(PipelineTest, ChecksAllNamesBeforeAnyWork) {
  PipelineRequest bad = request(kModels + "reef_creatures_float.tflite", "one");
  bool worked = false;
  bad.quantized = [&](const QuantizeRequest&, const QuantizedModel&) { worked = true; };
  fs::create_directory(folder_ / "one" / "reef_creatures_float_int8_edgetpu.emit.txt");
  bad.beside_names = [](const std::string& compiled) {
    return std::vector<std::string>{fs::path(compiled).replace_extension("emit.txt").string()};
  };
  EXPECT_FALSE(run_pipeline(bad).ok());
  EXPECT_FALSE(worked);
}

TEST_F(PipelineTest, AFloatModelWithoutSamplesIsAnErrorThatSaysWhatToGive) {
  PipelineRequest without = request(kModels + "cifar_resnet8.onnx", "one");
  without.quantize.data.path.clear();
  const auto result = run_pipeline(without);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.status().message().find("--data"), std::string::npos) << result.status().message();
  EXPECT_TRUE(names("one").empty());
}

TEST_F(PipelineTest, FilesBesideAreWrittenWithTheRest) {
  PipelineRequest dumping = request(kModels + "reef_creatures_int8.tflite", "one");
  dumping.quantize.data.path.clear();
  dumping.beside = [](const CompiledFile& file, const PipelineResult&) -> Result<std::vector<FileBeside>> {
    return std::vector<FileBeside>{{fs::path(file.output).replace_extension("note.txt").string(), "a note"}};
  };
  const auto result = run_pipeline(dumping);
  ASSERT_TRUE(result.ok() && result->compiled.ok());
  EXPECT_TRUE(result->quantized.empty());
  EXPECT_EQ(content("one", "reef_creatures_int8_edgetpu.note.txt"), "a note");
}

}  // namespace
}  // namespace reef::compiler

// SPDX-License-Identifier: Apache-2.0
// Compiling, verifying and auditing as a user does it.
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

class CommandLineCodegen : public CommandLine {
 protected:
  CommandLineCodegen() {
    QuantizedModel model;
    const std::int32_t x = model.conv(model.input({1, 12, 20, 8}), 16, 3, 2, "RELU");
    save(model.finish({model.conv(model.depthwise(x), 24)}), source_);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void save(const ir::Model& model, const std::string& path) { ASSERT_TRUE(tflite::save_model(model, path).ok()); }
  Outcome compile(const std::string& options) const {
    return reef("compile " + options + " -o " + folder_.string() + " " + source_);
  }

  const std::string source_ = path("net.tflite"), compiled_ = path("net_edgetpu.tflite");
};

bool says(const Outcome& outcome, const std::string& words) { return outcome.text.find(words) != std::string::npos; }

TEST_F(CommandLineCodegen, CompileVerifiesAtAllLevels) {
  for (const char* level : {"", "-O0", "-O1", "-O 1", "-O2"}) {
    const Outcome outcome = compile(level);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(says(outcome, "verified     on the virtual Edge TPU: 1440 values")) << outcome.text;
    EXPECT_TRUE(says(outcome, "Not run on silicon")) << outcome.text;
    const Outcome checked = reef("verify " + source_ + " " + compiled_);
    EXPECT_EQ(checked.exit_code, 0) << checked.text;
    EXPECT_TRUE(says(checked, "all 1440 values agree")) << checked.text;
    const Outcome sound = reef("audit " + compiled_);
    EXPECT_EQ(sound.exit_code, 0) << sound.text;
  }
  EXPECT_TRUE(says(compile("--no-verify"), "not verified: not asked for"));
  EXPECT_EQ(compile("-O3").exit_code, 2);
}

// Google's way of gathering a vector, and ours.
TEST_F(CommandLineCodegen, OneThingIsLeftToTimingAsInGooglesPrograms) {
  QuantizedModel model;
  const std::int32_t x = model.fully_connected(model.input({1, 256}), 256);
  save(model.finish({model.fully_connected(x, 256)}), source_);
  ASSERT_EQ(compile("-O0").exit_code, 0);
  const Outcome as_google = reef("audit " + compiled_);
  EXPECT_EQ(as_google.exit_code, 0) << as_google.text;
  EXPECT_TRUE(says(as_google, "leave to timing")) << as_google.text;
  EXPECT_EQ(reef("audit --strict " + compiled_).exit_code, 1);
  ASSERT_EQ(compile("-O1").exit_code, 0);
  const Outcome strict = reef("audit --strict " + compiled_);
  EXPECT_EQ(strict.exit_code, 0) << strict.text;
}

TEST_F(CommandLineCodegen, EveryStageCanBeSeen) {
  const std::pair<const char*, const char*> expected[] = {{"rewrite", "DEPTHWISE_CONV_2D"},
                                                          {"partition", "Edge TPU, part 0"},
                                                          {"lower", "op 1 DEPTHWISE_CONV_2D, convolution: t1 -> t2"},
                                                          {"schedule", "kept on tile"},
                                                          {"emit", "multiply_add tiles="}};
  for (const auto& [stage, words] : expected) {
    const Outcome outcome = compile(std::string("--stop-after ") + stage);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_TRUE(says(outcome, words)) << stage << "\n" << outcome.text;
    EXPECT_FALSE(std::filesystem::exists(compiled_)) << stage;
  }
  EXPECT_FALSE(says(compile("--stop-after lower"), "kept on tile"));
  const Outcome dumped = compile("--dump schedule --dump=emit");
  EXPECT_EQ(dumped.exit_code, 0) << dumped.text;
  for (const char* file : {"net_edgetpu.schedule.txt", "net_edgetpu.emit.txt", "net_edgetpu.tflite"}) {
    EXPECT_TRUE(std::filesystem::exists(folder_ / file)) << file;
  }
  EXPECT_EQ(compile("--stop-after dinner").exit_code, 2);
}

// Float passes run when a model is converted, quantized, or quantized on the way to a compiled file.
TEST_F(CommandLineCodegen, EveryPassCanBeSeen) {
  const std::string models = REEF_SOURCE_DIR "/models/", onnx = models + "cifar_resnet8.onnx";
  const Outcome before = reef("convert " + onnx + " --stop-after import");
  EXPECT_EQ(before.exit_code, 0) << before.text;
  EXPECT_TRUE(says(before, "TRANSPOSE(") || says(before, "TRANSPOSE ")) << before.text.substr(0, 2000);
  for (const std::string& command :
       {"convert " + onnx, "quantize " + onnx, "compile " + onnx + " -o " + folder_.string()}) {
    const Outcome behind = reef(command + " --stop-after fuse-activations");
    EXPECT_EQ(behind.exit_code, 0) << behind.text;
    EXPECT_TRUE(says(behind, "CONV_2D")) << command;
    EXPECT_FALSE(says(behind, " RELU(")) << command;
    EXPECT_FALSE(says(behind, "found nothing")) << command;
  }
  const Outcome nothing = reef("convert " + onnx + " --stop-after gelu");
  EXPECT_TRUE(says(nothing, "pass gelu found nothing to change")) << nothing.text.substr(0, 500);

  const std::string converted = path("c.tflite");
  const Outcome explained = reef("convert " + onnx + " --explain --dump transposes --dump=simplify -o " + converted);
  EXPECT_EQ(explained.exit_code, 0) << explained.text;
  EXPECT_TRUE(says(explained, "float round 1, transposes: ")) << explained.text;
  EXPECT_TRUE(says(explained, "fuse-activations")) << explained.text;
  EXPECT_TRUE(std::filesystem::exists(path("c.transposes.txt")));
  EXPECT_TRUE(std::filesystem::exists(path("c.simplify.txt")));
  const auto json = nlohmann::json::parse(reef("convert " + onnx + " --explain --json -o " + converted).text, nullptr,
                                          /*allow_exceptions=*/false);
  ASSERT_TRUE(json.is_object());
  ASSERT_FALSE(json["passes"].empty());
  EXPECT_EQ(json["passes"][0]["stage"], "float");
  EXPECT_GE(json["passes"][0]["changes"], 1);
  EXPECT_FALSE(json["passes"][0]["what"].empty());
}

TEST_F(CommandLineCodegen, PassesBeforeAndBehindQuantizationAreExplained) {
  const std::string models = REEF_SOURCE_DIR "/models/";
  const Outcome outcome = reef("compile " + models + "reef_creatures_float.tflite --data " + models +
                               "images --preprocess unit --limit 4 --held-back 0 --no-verify --explain --dump simplify "
                               "--dump io --rewrite io -o " +
                               folder_.string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "Passes")) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(path("reef_creatures_float_int8_edgetpu.simplify.txt"))) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(path("reef_creatures_float_int8_edgetpu.io.txt"))) << outcome.text;
  // A quantized model goes through no float pass.
  const Outcome none = compile("--stop-after transposes");
  EXPECT_EQ(none.exit_code, 1) << none.text;
  EXPECT_TRUE(says(none, "did not run on this model")) << none.text;
  const Outcome rewritten = compile("--stop-after one-pass");
  EXPECT_EQ(rewritten.exit_code, 0) << rewritten.text;
}

TEST_F(CommandLineCodegen, ExplainShowsStepsAndMemory) {
  const Outcome outcome = compile("--explain");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* words : {"op 0 CONV_2D, convolution", "an inference takes", "(simulated)", "stay on the chip",
                            "narrow memory:", "instructions:"}) {
    EXPECT_TRUE(says(outcome, words)) << words << "\n" << outcome.text;
  }
  const Outcome json = compile("--explain --json --no-verify");
  const auto parsed = nlohmann::json::parse(json.text, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << json.text;
  const auto& part = parsed["files"][0]["edge_tpu_subgraphs"][0]["explanation"];
  ASSERT_EQ(part["steps"].size(), 5u);  // input, three layers, result
  double cycles = 0;
  for (const auto& step : part["steps"]) {
    EXPECT_GT(step["instructions"], 0);
    cycles += step["cycles"].get<double>();
  }
  EXPECT_GT(cycles, 0);
  EXPECT_LE(cycles, part["cycles"].get<double>());
}

// The same network with other weights: what was compiled is not what is asked for.
TEST_F(CommandLineCodegen, VerifySeesAnotherModel) {
  ASSERT_EQ(compile("--quiet").exit_code, 0);
  QuantizedModel model;
  model.weights({1, 5, 1, 1});  // moves on the sequence of the weights
  const std::int32_t x = model.conv(model.input({1, 12, 20, 8}), 16, 3, 2, "RELU");
  const std::string other = path("other.tflite");
  save(model.finish({model.conv(model.depthwise(x), 24)}), other);
  const Outcome outcome = reef("verify " + other + " " + compiled_);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
  EXPECT_TRUE(says(outcome, "values differ")) << outcome.text;
  EXPECT_EQ(reef("verify " + other + " " + compiled_ + " --tolerance 255").exit_code, 0);
  const Outcome json = reef("verify " + source_ + " " + compiled_ + " --against tflite --tolerance 1 --json");
  const auto parsed = nlohmann::json::parse(json.text, nullptr, false);
  ASSERT_TRUE(parsed.is_object()) << json.text;
  EXPECT_EQ(parsed["equal"], true);
  EXPECT_EQ(parsed["outputs"].size(), 1u);
}

// Inputs of another size: nothing has to run for the verdict.
TEST_F(CommandLineCodegen, VerifySeesAnotherModelByItsInputs) {
  ASSERT_EQ(compile("--quiet").exit_code, 0);
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 12, 24, 8}), 16, 3, 2, "RELU");
  const std::string other = path("other.tflite");
  save(model.finish({model.conv(model.depthwise(x), 24)}), other);
  const Outcome outcome = reef("verify " + other + " " + compiled_);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
  EXPECT_TRUE(says(outcome, "was not compiled from")) << outcome.text;
  EXPECT_TRUE(says(outcome, "its input 0 is int8[1, 12, 20, 8], the source's is int8[1, 12, 24, 8]")) << outcome.text;
}

// Scores of several scales in one table, too large to be joined on the chip.
TEST_F(CommandLineCodegen, OutputsThatDoNotFitWhenJoinedMayBeSplit) {
  QuantizedModel model;
  const std::int32_t x = model.conv(model.input({1, 20, 20, 16}), 32, 3);
  const std::int32_t a = model.reshape(model.conv(x, 6 * 91, 1), {1, 2400, 91});
  const std::int32_t b = model.reshape(model.conv(x, 6 * 91, 3), {1, 2400, 91});
  save(model.finish({model.concatenation({a, b}, 1)}), source_);
  const Outcome outcome = compile("--no-verify");
  EXPECT_TRUE(says(outcome, "no code for it yet, first op 5 CONCATENATION: ")) << outcome.text;
  EXPECT_TRUE(says(outcome, "; `reef quantize --split-outputs` gives out the parts that it joins")) << outcome.text;
}

TEST_F(CommandLineCodegen, WhatIsNotCompiledIsSaid) {
  const Outcome audit = reef("audit " + source_);
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_TRUE(says(audit, "not compiled for the Edge TPU")) << audit.text;
  EXPECT_EQ(reef("verify " + source_).exit_code, 2);
  EXPECT_EQ(reef("verify " + source_ + " " + path("none.tflite")).exit_code, 1);
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// Models for microcontrollers from the command line: check, compile and export, what they refuse and why. The real
// TFLite Micro (the package `tflite-micro`) runs what is accepted, where the Python that $REEF_PYTHON names has it.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command_line.h"
#include "formats/tflite/writer.h"
#include "zoo.h"

namespace reef::testing {
namespace {

const std::string kDetector = REEF_SOURCE_DIR "/models/reef_detector_int8.tflite";
const std::string kModel = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite";

class Micro : public CommandLine {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  nlohmann::json checked(const std::string& model, const std::string& target) const {
    const Outcome outcome = reef(fmt::format("check --target {} --json '{}'", target, model));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
    return outcome.exit_code == 0 ? nlohmann::json::parse(outcome.text)["micro"] : nlohmann::json();
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Compiles main.cc and model_data.cc of an exported folder against declarations of our own: neither Coral's SDK nor
  // TFLite Micro's headers can be installed from a registry. This finds wrong C++, not a call that the SDK lacks.
  int compile(const std::string& folder, bool is_coral) const {
    const std::string headers = path("headers");
    const auto declare = [&](const std::string& header, const std::string& content) {
      std::filesystem::create_directories(std::filesystem::path(headers + "/" + header).parent_path());
      std::ofstream(headers + "/" + header) << "#include \"" << content << "\"\n";
    };
    const std::string prefix = is_coral ? "third_party/tflite-micro/" : "";
    for (const char* header : {"micro/micro_error_reporter.h", "micro/micro_interpreter.h", "micro/micro_log.h",
                               "micro/micro_mutable_op_resolver.h", "micro/micro_resource_variable.h",
                               "micro/system_setup.h", "schema/schema_generated.h"}) {
      declare(prefix + "tensorflow/lite/" + header, is_coral ? "coral_sdk.h" : "micro_runtime.h");
    }
    for (const char* header :
         {"libs/base/filesystem.h", "libs/camera/camera.h", "libs/tensorflow/posenet_decoder_op.h",
          "libs/tensorflow/utils.h", "libs/tpu/edgetpu_manager.h", "libs/tpu/edgetpu_op.h",
          "third_party/freertos_kernel/include/FreeRTOS.h", "third_party/freertos_kernel/include/task.h"}) {
      declare(header, "coral_sdk.h");
    }
    const std::string command = fmt::format(
        "c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I '{0}' -I '{1}/tests/micro/declarations' -I '{2}' "
        "'{2}/main.cc' "
        "&& c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only -I '{2}' '{2}/model_data.cc'",
        headers, REEF_SOURCE_DIR, folder);
    return std::system(command.c_str());
  }
};

TEST_F(Micro, AnInt8NetworkRunsOnTfliteMicro) {
  const nlohmann::json found = checked(kModel, "tflm");
  EXPECT_TRUE(found["accepted"]) << found.dump(2);
  EXPECT_GT(found["arena"]["tflm_64"]["bytes"], found["arena"]["tflm_32"]["bytes"]);
  bool has_conv = false;
  for (const auto& line : found["resolver"]) has_conv |= line["code"] == "AddConv2D()";
  EXPECT_TRUE(has_conv);
  EXPECT_GT(found["cortex_m7_us_estimated"], 0);
}

TEST_F(Micro, TheCompiledNetworkNeedsOneOperatorOnTheBoard) {
  const Outcome compiled =
      reef(fmt::format("compile --target micro --no-verify -o '{}' '{}'", folder_.string(), kModel));
  ASSERT_EQ(compiled.exit_code, 0) << compiled.text;
  const std::string file = path("reef_creatures_int8_edgetpu.tflite");
  const nlohmann::json found = checked(file, "micro");
  EXPECT_TRUE(found["accepted"]) << found.dump(2);
  EXPECT_EQ(found["resolver"][0]["op"], "edgetpu-custom-op");
  EXPECT_LT(found["arena"]["coral"]["bytes"], 16 << 20);
  // The same file is nothing for a board without an Edge TPU.
  const nlohmann::json without = checked(file, "tflm");
  EXPECT_FALSE(without["accepted"]);
  EXPECT_EQ(without["refusals"][0]["rule"], "operator");
}

TEST_F(Micro, ExportedProgramsCompile) {
  ASSERT_EQ(reef(fmt::format("compile --target micro --no-verify -o '{}' '{}'", folder_.string(), kModel)).exit_code,
            0);
  for (const bool embeds : {false, true}) {
    const Outcome coral =
        reef(fmt::format("export micro '{}' -o '{}' --labels '{}' {}", path("reef_creatures_int8_edgetpu.tflite"),
                         path("coral"), REEF_SOURCE_DIR "/models/reef_creatures_labels.txt", embeds ? "--embed" : ""));
    ASSERT_EQ(coral.exit_code, 0) << coral.text;
    EXPECT_EQ(compile(path("coral"), true), 0);
    EXPECT_NE(text_of("coral/main.cc").find("AddCustom(coralmicro::kCustomOp"), std::string::npos);
    EXPECT_NE(text_of("coral/CMakeLists.txt").find("add_executable_m7"), std::string::npos);
    EXPECT_EQ(text_of("coral/reef_creatures_int8_edgetpu.tflite"), text_of("reef_creatures_int8_edgetpu.tflite"));
  }
  // The board's camera cannot crop, which the command says.
  const Outcome cropped = reef(fmt::format("export micro --preprocess imagenet '{}' -o '{}'",
                                           path("reef_creatures_int8_edgetpu.tflite"), path("cropped")));
  EXPECT_EQ(cropped.exit_code, 0) << cropped.text;
  EXPECT_NE(cropped.text.find("the crop is left out"), std::string::npos) << cropped.text;
  const Outcome plain = reef(fmt::format("export micro --target tflm '{}' -o '{}'", kModel, path("plain")));
  ASSERT_EQ(plain.exit_code, 0) << plain.text;
  EXPECT_EQ(compile(path("plain"), false), 0);
}

// Boxes are read from the results of TFLite_Detection_PostProcess, whatever their order among the model's.
TEST_F(Micro, ExportedDetectorsCompile) {
  ASSERT_EQ(reef(fmt::format("compile --target micro --no-verify -o '{}' '{}'", folder_.string(), kDetector)).exit_code,
            0);
  for (const bool is_coral : {true, false}) {
    const std::string model = is_coral ? path("reef_detector_int8_edgetpu.tflite") : kDetector;
    const Outcome made =
        reef(fmt::format("export micro --target {} '{}' -o '{}' --labels '{}'", is_coral ? "micro" : "tflm", model,
                         path("boxes"), REEF_SOURCE_DIR "/models/reef_detector_labels.txt"));
    ASSERT_EQ(made.exit_code, 0) << made.text;
    EXPECT_EQ(compile(path("boxes"), is_coral), 0);
    const std::string text = text_of("boxes/main.cc");
    EXPECT_NE(text.find("AddDetectionPostprocess()"), std::string::npos);
    EXPECT_NE(text.find("const float* boxes"), std::string::npos);
    EXPECT_NE(text_of("boxes/labels.txt"), "");
  }
}

// Colours, their order and the mean of each channel go into the program; what it cannot do is not silently left out.
TEST_F(Micro, ExportedProgramsFollowThePreprocessing) {
  const auto exported = [&](const std::string& how) {
    const Outcome made =
        reef(fmt::format("export micro --target tflm --preprocess '{}' '{}' -o '{}'", how, kModel, path("p")));
    EXPECT_EQ(made.exit_code, 0) << made.text;
    EXPECT_EQ(compile(path("p"), false), 0);
    return text_of("p/main.cc");
  };
  EXPECT_NE(exported("imagenet").find("picture[3 * i + c]"), std::string::npos);
  EXPECT_NE(exported("imagenet,order=bgr").find("picture[3 * i + 2 - c]"), std::string::npos);
  EXPECT_NE(exported("imagenet,grey").find("kHeight * kWidth * 1"), std::string::npos);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// With a compiler for Cortex-M, against the real thing, where somebody has it (docs/micro.md): $REEF_TFLM_FLAGS and
// $REEF_CORAL_FLAGS are the flags that find the headers of TFLite Micro and of Coral's Micro SDK, $REEF_TFLM_LIBRARY
// what links a program with TFLite Micro, and $REEF_TFLM_RUN the command that runs one, such as an emulator.
class CortexM : public Micro {
 protected:
  void SetUp() override {
    tflm_ = environment("REEF_TFLM_FLAGS");
    coral_ = environment("REEF_CORAL_FLAGS");
    if (tflm_.empty() && coral_.empty()) {
      GTEST_SKIP() << "neither REEF_TFLM_FLAGS nor REEF_CORAL_FLAGS names the headers (docs/micro.md)";
    }
  }
  void expect_compiles(const std::string& folder, const std::string& flags) const {
    for (const auto& entry : std::filesystem::directory_iterator(path(folder))) {
      if (entry.path().extension() != ".cc") continue;
      const std::string command = fmt::format("{} {} -Wall -Werror -I '{}' -c '{}' -o '{}.o'", kCompiler, flags,
                                              path(folder), entry.path().string(), entry.path().string());
      EXPECT_EQ(std::system(command.c_str()), 0) << command;
    }
  }
  // What the linked program prints.
  std::string printed(const std::string& folder) const {
    const std::string command =
        fmt::format("{0} '{1}'/*.o {2} -o '{1}/program' && {3} '{1}/program' > '{1}/printed'", kCompiler, path(folder),
                    environment("REEF_TFLM_LIBRARY"), environment("REEF_TFLM_RUN"));
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    return text_of(folder + "/printed");
  }
  static constexpr const char* kCompiler =
      "arm-none-eabi-g++ -std=gnu++17 -Os -mthumb -mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16 "
      "-fno-rtti -fno-exceptions -DTF_LITE_STATIC_MEMORY";
  std::string tflm_, coral_;
};

TEST_F(CortexM, CompilesExportedPrograms) {
  const std::string labels = REEF_SOURCE_DIR "/models/reef_creatures_labels.txt";
  for (const std::string& model : {kModel, kDetector}) {
    if (!tflm_.empty()) {
      ASSERT_EQ(reef(fmt::format("export micro --target tflm '{}' -o '{}'", model, path("plain"))).exit_code, 0);
      expect_compiles("plain", tflm_);
    }
    if (coral_.empty()) continue;
    ASSERT_EQ(reef(fmt::format("compile --target micro --no-verify -o '{}' '{}'", folder_.string(), model)).exit_code,
              0);
    const std::string compiled = path(std::filesystem::path(model).stem().string() + "_edgetpu.tflite");
    for (const char* how : {"", "--embed"}) {
      const Outcome made =
          reef(fmt::format("export micro '{}' -o '{}' --labels '{}' {}", compiled, path("coral"), labels, how));
      ASSERT_EQ(made.exit_code, 0) << made.text;
      expect_compiles("coral", coral_);
    }
  }
}

// The line that an exported program prints for the best class of `reef run --json`.
std::string first_line(const std::string& json) {
  const nlohmann::json best = nlohmann::json::parse(json)["outputs"][0]["top"][0];
  return fmt::format("{} {}: {:.3f}\r\n", best["index"].get<int>(), best["label"].get<std::string>(),
                     best["value"].get<double>());
}

TEST_F(CortexM, ExportedProgramsSeeWhatReefSees) {
  if (environment("REEF_TFLM_LIBRARY").empty()) GTEST_SKIP() << "REEF_TFLM_LIBRARY does not link TFLite Micro";
  const std::string labels = REEF_SOURCE_DIR "/models/reef_creatures_labels.txt";
  for (const char* picture : {"coral_2.png", "crab_1.jpg"}) {
    for (const char* how : {"", "--preprocess codes,order=bgr", "--preprocess codes,grey,letterbox"}) {
      const std::string file = fmt::format("{}/models/images/{}", REEF_SOURCE_DIR, picture);
      const Outcome made = reef(fmt::format("export micro --target tflm {} --labels '{}' --sample '{}' '{}' -o '{}'",
                                            how, labels, file, kModel, path("program")));
      ASSERT_EQ(made.exit_code, 0) << made.text;
      expect_compiles("program", tflm_);
      const Outcome ran = reef(fmt::format("run --tflite 2.9 {} --image '{}' --json '{}'", how, file, kModel));
      ASSERT_EQ(ran.exit_code, 0) << ran.text;
      const std::string wanted = first_line(ran.text);
      EXPECT_EQ(printed("program").substr(0, wanted.size()), wanted) << picture << " " << how;
    }
  }
}

TEST_F(Micro, ExportRefusesWhatIsNotCompiled) {
  const Outcome outcome = reef(fmt::format("export micro '{}' -o '{}'", kModel, path("none")));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("reef compile --target micro"), std::string::npos) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(path("none/main.cc")));
}

// ---- Rewrites ----

struct OneOp {
  std::string type;
  std::int32_t code = 0;
  ir::DataType data = ir::DataType::kInt8;
  ir::Shape input, output;
};

// A model of one operator, as a file. Operators with an axis get 1 for it.
std::string model_file(const OneOp& op, const std::string& path) {
  ir::Model model;
  model.buffers.resize(2);
  model.buffers[1].data = Bytes(std::vector<std::uint8_t>{1, 0, 0, 0});
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  const auto tensor = [&](const std::string& name, ir::DataType type, const ir::Shape& shape) {
    ir::Tensor& made = graph.tensors.emplace_back();
    made.name = name;
    made.type = type;
    made.shape = shape;
    if (ir::bits_per_element(type) <= 16) {
      made.quantization.scale = {0.05F};
      made.quantization.zero_point = {0};
      made.has_quantization = true;
    }
  };
  tensor("x", op.data, op.input);
  tensor("y", op.data, op.output);
  ir::Operator& made = graph.operators.emplace_back();
  made.type = op.type;
  made.builtin_code = op.code;
  made.inputs = {0};
  made.outputs = {1};
  if (op.type == "EXPAND_DIMS") {
    tensor("axis", ir::DataType::kInt32, {});
    graph.tensors.back().buffer = 1;
    made.inputs.push_back(2);
  }
  graph.inputs = {0};
  graph.outputs = {1};
  EXPECT_TRUE(tflite::save_model(model, path).ok());
  return path;
}

std::vector<std::string> operators_of(const nlohmann::json& micro) {
  std::vector<std::string> names;
  for (const auto& line : micro["resolver"]) names.push_back(line["op"]);
  return names;
}

// TFLite Micro has no GELU, but LOGISTIC and MUL; what the rewrites make of it is what it runs.
TEST_F(Micro, WhatTfliteMicroLacksIsRewrittenToWhatItHas) {
  const std::string gelu =
      model_file({"GELU", 150, ir::DataType::kInt8, {1, 8, 8, 4}, {1, 8, 8, 4}}, path("gelu.tflite"));
  const Outcome as_it_is = reef(fmt::format("check --target tflm --strict --no-rewrites '{}'", gelu));
  EXPECT_EQ(as_it_is.exit_code, 1);
  EXPECT_NE(as_it_is.text.find("has no GELU"), std::string::npos) << as_it_is.text;
  const Outcome rewritten =
      reef(fmt::format("check --target tflm --strict --write-rewritten '{}' '{}'", path("new.tflite"), gelu));
  ASSERT_EQ(rewritten.exit_code, 0) << rewritten.text;
  const Outcome checked = reef(fmt::format("check --target tflm --no-rewrites --json '{}'", path("new.tflite")));
  ASSERT_EQ(checked.exit_code, 0) << checked.text;
  const nlohmann::json found = nlohmann::json::parse(checked.text)["micro"];
  EXPECT_TRUE(found["accepted"]);
  const auto names = operators_of(found);
  EXPECT_NE(std::find(names.begin(), names.end(), "LOGISTIC"), names.end()) << found["resolver"].dump();
}

// int16 stays on the CPU, where Coral's release has no EXPAND_DIMS of it: a second pass makes a RESHAPE.
TEST_F(Micro, WhatStaysOnTheCpuIsRewrittenToWhatCoralsReleaseHas) {
  const std::string file =
      model_file({"EXPAND_DIMS", 70, ir::DataType::kInt16, {6, 4}, {6, 1, 4}}, path("expand.tflite"));
  const nlohmann::json found = checked(file, "micro");
  EXPECT_TRUE(found["accepted"]) << found.dump(2);
  EXPECT_EQ(operators_of(found), std::vector<std::string>{"RESHAPE"});
  EXPECT_EQ(operators_of(checked(file, "tflm")), std::vector<std::string>{"EXPAND_DIMS"});  // which the current one has
}

// ---- Wrong use ----

TEST_F(Micro, SizesOfABoardAreStatedAndChecked) {
  const Outcome small = reef(fmt::format("check --target tflm --strict --ram 16K --flash 1M '{}'", kModel));
  EXPECT_EQ(small.exit_code, 1);
  EXPECT_NE(small.text.find("the board's RAM has 16.0 KiB"), std::string::npos) << small.text;
  EXPECT_NE(small.text.find("a board with at least"), std::string::npos) << small.text;
  EXPECT_EQ(reef(fmt::format("check --target tflm --strict --ram 256K --flash 1M '{}'", kModel)).exit_code, 0);
  const Outcome exported =
      reef(fmt::format("export micro --target tflm --flash 10K '{}' -o '{}'", kModel, path("none")));
  EXPECT_NE(exported.exit_code, 0);
  EXPECT_NE(exported.text.find("the board's flash has 10.0 KiB"), std::string::npos) << exported.text;
  EXPECT_FALSE(std::filesystem::exists(path("none/main.cc")));
  for (const char* target : {"micro", "edgetpu"}) {
    const Outcome known = reef(fmt::format("check --target {} --ram 16K '{}'", target, kModel));
    EXPECT_NE(known.exit_code, 0);
    EXPECT_NE(known.text.find("add --target tflm"), std::string::npos) << known.text;
  }
}

TEST_F(Micro, NothingIsCompiledForABoardWithoutAnEdgeTpu) {
  const Outcome outcome = reef(fmt::format("compile --target tflm -o '{}' '{}'", folder_.string(), kModel));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.text.find("reef export micro --target tflm"), std::string::npos) << outcome.text;
}

TEST_F(Micro, WhatTheBoardCannotHoldIsRefusedWithTheNumbersAndARemedy) {
  const std::string large =
      model_file({"RELU", 19, ir::DataType::kInt16, {1, 4096, 4096, 1}, {1, 4096, 4096, 1}}, path("large.tflite"));
  const Outcome checked = reef(fmt::format("check --target micro --strict '{}'", large));
  EXPECT_EQ(checked.exit_code, 1);
  const Outcome compiled =
      reef(fmt::format("compile --target micro --no-verify -o '{}' '{}'", folder_.string(), large));
  EXPECT_NE(compiled.exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("large_edgetpu.tflite")));
  const std::string tall =
      model_file({"ABS", 101, ir::DataType::kInt8, {1, 8192, 8192, 1}, {1, 8192, 8192, 1}}, path("tall.tflite"));
  const nlohmann::json found = this->checked(tall, "micro");
  ASSERT_FALSE(found["accepted"]) << found.dump(2);
  bool said = false;
  for (const auto& refusal : found["refusals"]) {
    if (refusal["rule"] != "memory") continue;
    said = true;
    EXPECT_NE(refusal["reason"].get<std::string>().find("the board's static SDRAM has 32.0 MiB"), std::string::npos);
    EXPECT_NE(refusal["remedy"].get<std::string>().find("smaller input"), std::string::npos);
  }
  EXPECT_TRUE(said) << found.dump(2);
}

// Coral's PoseNet for computers declares no shapes for the decoder's results: on the board the decoder would write
// beyond them. With its true shapes it runs there.
TEST_F(Micro, TrueShapesCanBeWritten) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::string file = zoo + "/pairs/posenet_353_481/v15_edgetpu.tflite";
  const Outcome as_it_is =
      reef(fmt::format("check --target micro --write-rewritten '{}' '{}'", path("shaped.tflite"), file));
  EXPECT_NE(as_it_is.text.find("writes up to 680 for 20 people"), std::string::npos) << as_it_is.text;
  const nlohmann::json shaped = checked(path("shaped.tflite"), "micro");
  EXPECT_TRUE(shaped["accepted"]) << shaped.dump(2);
  const Outcome exported = reef(fmt::format("export micro '{}' -o '{}'", path("shaped.tflite"), path("poses")));
  ASSERT_EQ(exported.exit_code, 0) << exported.text;
  EXPECT_NE(text_of("poses/main.cc").find("#include \"libs/tensorflow/posenet_decoder_op.h\""), std::string::npos);
  EXPECT_EQ(compile(path("poses"), true), 0);
}

// ---- Against the real thing ----

// Python with the package `tflite-micro`, or nothing.
std::string python_with_tflite_micro() {
  const char* chosen = std::getenv("REEF_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  const std::string command = fmt::format("{} -c 'import tflite_micro, flatbuffers' >/dev/null 2>&1", python);
  return std::system(command.c_str()) == 0 ? python : "";
}

class RealTfliteMicro : public Micro {
 protected:
  void SetUp() override {
    python_ = python_with_tflite_micro();
    if (python_.empty()) GTEST_SKIP() << "no tflite-micro; REEF_PYTHON names a Python that has it";
  }
  // Runs tools/oracle/check_micro.py, which fails where it does not do what Reef says.
  void expect_agreement(const std::string& arguments) const {
    const std::string log = path("log");
    const int code = std::system(fmt::format("{} {}/tools/oracle/check_micro.py {} {} > '{}' 2>&1", python_,
                                             REEF_SOURCE_DIR, REEF_PROGRAM, arguments, log)
                                     .c_str());
    EXPECT_EQ(code, 0) << text_of("log");
  }
  std::string python_;
};

TEST_F(RealTfliteMicro, RunsWholeModelsAsPromised) {
  std::string models = kModel;
  const std::string zoo = zoo_folder();
  for (const char* folder : {"/tflite", "/pairs", "/tflite_float"}) {
    if (!zoo.empty()) models += fmt::format(" '{}{}'", zoo, folder);
  }
  if (const std::string wild = wild_folder(); !wild.empty()) models += fmt::format(" '{}'", wild);
  expect_agreement(models);
}

// What the CPU has to do before and behind the Edge TPU operators of compiled files.
TEST_F(RealTfliteMicro, RunsWhatCompiledModelsLeaveToTheCpu) {
  std::string models;
  for (const std::string& folder : {zoo_folder(), wild_folder()}) {
    if (!folder.empty()) models += fmt::format(" '{}'", folder);
  }
  if (models.empty()) GTEST_SKIP() << "no collection of compiled models";
  expect_agreement("--cpu-parts" + models);
}

// Others than those by which the rules were mended.
TEST_F(RealTfliteMicro, RunsRandomModelsAsPromised) { expect_agreement("--random 60 --first 100000"); }

// With state, with subgraphs, hard to plan.
TEST_F(RealTfliteMicro, RunsRandomGraphsAsPromised) { expect_agreement("--graphs 60 --first 200000"); }

}  // namespace
}  // namespace reef::testing

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
#include "zoo.h"

namespace reef::testing {
namespace {

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
         {"libs/base/filesystem.h", "libs/camera/camera.h", "libs/tensorflow/utils.h", "libs/tpu/edgetpu_manager.h",
          "libs/tpu/edgetpu_op.h", "third_party/freertos_kernel/include/FreeRTOS.h",
          "third_party/freertos_kernel/include/task.h"}) {
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
  const Outcome plain = reef(fmt::format("export micro --target tflm '{}' -o '{}'", kModel, path("plain")));
  ASSERT_EQ(plain.exit_code, 0) << plain.text;
  EXPECT_EQ(compile(path("plain"), false), 0);
}

TEST_F(Micro, ExportRefusesWhatIsNotCompiled) {
  const Outcome outcome = reef(fmt::format("export micro '{}' -o '{}'", kModel, path("none")));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("reef compile --target micro"), std::string::npos) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(path("none/main.cc")));
}

TEST_F(Micro, RealTfliteMicroAgrees) {
  const char* chosen = std::getenv("REEF_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  if (std::system(fmt::format("{} -c 'import tflite_micro, flatbuffers' >/dev/null 2>&1", python).c_str()) != 0) {
    GTEST_SKIP() << python << " has no tflite-micro; REEF_PYTHON names one that has";
  }
  std::string models = kModel;
  const std::string zoo = zoo_folder();
  for (const char* folder : {"/tflite/mlperf_tiny", "/tflite/tflite_micro"}) {
    if (zoo.empty()) break;
    for (const auto& entry : std::filesystem::directory_iterator(zoo + folder)) {
      // An LSTM, which computes as the current TFLite does, before a dense layer, which rounds as 2.9 does: no one
      // release of `reef run` has these bits.
      if (entry.path().stem() != "dtln_noise_suppression") models += fmt::format(" '{}'", entry.path().string());
    }
  }
  const std::string log = path("log");
  const int code = std::system(fmt::format("{} {}/tools/oracle/check_micro.py {} {} > '{}' 2>&1", python,
                                           REEF_SOURCE_DIR, REEF_PROGRAM, models, log)
                                   .c_str());
  EXPECT_EQ(code, 0) << text_of("log");
}

}  // namespace
}  // namespace reef::testing

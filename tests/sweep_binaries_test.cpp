// SPDX-License-Identifier: Apache-2.0
// tools/sweep_binaries over folders of files made here: good ones, one with another source, damaged ones.
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

class SweepBinaries : public CommandLine {
 protected:
  SweepBinaries() { std::filesystem::create_directories(nets_); }

  void add(const std::string& name, int channels) {
    QuantizedModel model;
    const std::int32_t x = model.conv(model.input({1, 10, 10, 4}), channels, 3, 2, "RELU");
    const auto saved = tflite::save_model(model.finish({model.conv(x, 8)}), (nets_ / (name + ".tflite")).string());
    ASSERT_TRUE(saved.ok()) << saved.message();
    const Outcome made = reef("compile --quiet " + (nets_ / (name + ".tflite")).string() + " -o " + nets_.string());
    ASSERT_EQ(made.exit_code, 0) << made.text;
  }

  Outcome sweep(const std::string& arguments) {
    const std::string command = fmt::format("{} {}/tools/sweep_binaries --reef {} {} 2>&1", REEF_PYTHON,
                                            REEF_SOURCE_DIR, REEF_PROGRAM, arguments);
    Outcome outcome;
    std::FILE* pipe = ::popen(command.c_str(), "r");
    std::array<char, 4096> chunk{};
    for (std::size_t n; (n = std::fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
      outcome.text.append(chunk.data(), n);
    outcome.exit_code = WEXITSTATUS(::pclose(pipe));
    return outcome;
  }

  std::filesystem::path nets_ = folder_ / "nets";
};

TEST_F(SweepBinaries, GoodFilesPassEveryStep) {
  add("first", 16);
  add("second", 24);
  const Outcome outcome = sweep(nets_.string() + " --jobs 2");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  for (const char* words :
       {"[2/2]", "first_edgetpu.tflite: inspect ok, disasm ok, audit ok, run ok, verify ok, check ok", "verify: 2 of 2",
        "check: 2 of 2"}) {
    EXPECT_NE(outcome.text.find(words), std::string::npos) << words << "\n" << outcome.text;
  }
}

TEST_F(SweepBinaries, FailuresAreGroupedByCause) {
  add("good", 16);
  add("other", 24);
  // Another model in the place of the source; two files cut short; a compiled file without a source.
  std::filesystem::copy_file(nets_ / "good_edgetpu.tflite", nets_ / "alone_edgetpu.tflite");
  QuantizedModel model;
  model.weights({1, 5, 1, 1});
  const std::int32_t x = model.conv(model.input({1, 10, 10, 4}), 24, 3, 2, "RELU");
  ASSERT_TRUE(tflite::save_model(model.finish({model.conv(x, 8)}), (nets_ / "other.tflite").string()).ok());
  for (const char* name : {"cut_a_edgetpu.tflite", "cut_b_edgetpu.tflite"}) {
    std::filesystem::copy_file(nets_ / "good_edgetpu.tflite", nets_ / name);
    std::filesystem::resize_file(nets_ / name, std::filesystem::file_size(nets_ / name) - 64);
  }
  const std::string report = (folder_ / "report.json").string();
  const Outcome outcome = sweep(nets_.string() + " --json " + report);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.text;
  std::ifstream file(report);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_TRUE(json.is_object()) << outcome.text;
  EXPECT_EQ(json["passed"], false);
  ASSERT_EQ(json["files"].size(), 5u);
  std::map<std::string, nlohmann::json> by_name;
  for (const auto& each : json["files"]) {
    by_name[std::filesystem::path(each["file"].get<std::string>()).filename().string()] = each;
  }
  EXPECT_EQ(by_name["good_edgetpu.tflite"]["steps"]["verify"]["result"], "ok");
  EXPECT_EQ(by_name["alone_edgetpu.tflite"]["steps"]["verify"]["result"], "skipped");
  EXPECT_EQ(by_name["alone_edgetpu.tflite"]["steps"]["run"]["result"], "ok");
  EXPECT_EQ(by_name["other_edgetpu.tflite"]["steps"]["verify"]["result"], "failed");
  EXPECT_EQ(by_name["cut_a_edgetpu.tflite"]["steps"]["inspect"]["result"], "failed");
  bool has_pair = false;
  for (const auto& cause : json["causes"])
    has_pair = has_pair || (cause["step"] == "inspect" && cause["files"].size() == 2);
  EXPECT_TRUE(has_pair) << json["causes"].dump(1);
}

TEST_F(SweepBinaries, StepsLimitsAndWrongCalls) {
  add("net", 16);
  const Outcome some = sweep(nets_.string() + " --steps run,verify");
  EXPECT_EQ(some.exit_code, 0) << some.text;
  EXPECT_EQ(some.text.find("audit"), std::string::npos) << some.text;
  const Outcome late = sweep(nets_.string() + " --steps run --time-limit 0.0001");
  EXPECT_EQ(late.exit_code, 1) << late.text;
  EXPECT_NE(late.text.find("it takes longer than"), std::string::npos) << late.text;
  EXPECT_EQ(sweep(nets_.string() + " --steps bake").exit_code, 2);
  EXPECT_EQ(sweep(folder_.string() + "/absent").exit_code, 2);
  const Outcome json = sweep((nets_ / "net_edgetpu.tflite").string() + " --json - --steps inspect");
  EXPECT_TRUE(nlohmann::json::parse(json.text, nullptr, false).is_object()) << json.text;
}

}  // namespace
}  // namespace reef::testing

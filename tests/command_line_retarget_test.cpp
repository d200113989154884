// SPDX-License-Identifier: Apache-2.0
// retarget as a user meets it, on a model and a package made here.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/tflite/writer.h"
#include "retarget/sample_package.h"

namespace reef::testing {
namespace {

class CommandLineRetarget : public CommandLine {
 protected:
  CommandLineRetarget() {
    retarget::testing::SampleLayer after;
    after.weights.fill(130);
    after.output_zero = 40;
    const auto compiled = retarget::testing::sample_compiled({});
    EXPECT_TRUE(compiled.ok());
    EXPECT_TRUE(write_file(compiled_, std::span(*compiled)).ok());
    EXPECT_TRUE(tflite::save_model(retarget::testing::sample_model(after), model_).ok());
  }
  std::string compiled_ = (folder_ / "old_edgetpu.tflite").string();
  std::string model_ = (folder_ / "new.tflite").string();
  std::string output_ = (folder_ / "new_edgetpu.tflite").string();
};

TEST_F(CommandLineRetarget, WritesThePackage) {
  const Outcome outcome = reef("retarget --template " + compiled_ + " " + model_ + " -o " + output_ + " --report");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("out_zero         00000011 -> 00000028"), std::string::npos) << outcome.text;
  EXPECT_TRUE(std::filesystem::exists(output_));
  // What was written is a template itself.
  const Outcome again = reef("retarget --template " + output_ + " " + model_ + " --dry-run --json");
  ASSERT_EQ(again.exit_code, 0) << again.text;
  const auto json = nlohmann::json::parse(again.text);
  EXPECT_EQ(json["changed_parameter_bytes"], 0);
  EXPECT_TRUE(json["instructions"].empty());
  EXPECT_EQ(json["layers"], 1);
}

TEST_F(CommandLineRetarget, DryRunWritesNothing) {
  const Outcome outcome = reef("retarget --template " + compiled_ + " " + model_ + " --dry-run");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_FALSE(std::filesystem::exists(output_));
}

TEST_F(CommandLineRetarget, RefusesWithAReason) {
  const Outcome wrong = reef("retarget --template " + model_ + " " + model_ + " -o " + output_);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.text.find("not compiled for the Edge TPU"), std::string::npos) << wrong.text;
  EXPECT_FALSE(std::filesystem::exists(output_));
  EXPECT_EQ(reef("retarget --template " + compiled_ + " " + model_).exit_code, 2);  // where to?
  EXPECT_EQ(reef("retarget " + model_ + " -o " + output_).exit_code, 2);
}

}  // namespace
}  // namespace reef::testing

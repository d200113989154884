// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: exit codes, messages, files.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

const std::string kModel = REEF_SOURCE_DIR "/models/reef_creatures_int8.tflite";

TEST_F(CommandLine, HelpHasAnExample) {
  for (const char* command : {"", "run", "inspect", "disasm", "asm", "compile", "verify", "audit"}) {
    const Outcome outcome = reef(std::string(command) + " --help");
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_NE(outcome.text.find("Example"), std::string::npos) << command;
  }
}

TEST_F(CommandLine, WrongUsageExitsWithTwo) {
  EXPECT_EQ(reef("").exit_code, 2);
  EXPECT_EQ(reef("frobnicate").exit_code, 2);
  EXPECT_EQ(reef("run").exit_code, 2);
  EXPECT_EQ(reef("run " + kModel + " --threads 0").exit_code, 2);
}

TEST_F(CommandLine, BadFilesExitWithOneAndSayWhich) {
  const Outcome missing = reef("run /no/such/model.tflite");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.text.find("/no/such/model.tflite"), std::string::npos);
  const std::string text_file = (folder_ / "text.tflite").string();
  ASSERT_TRUE(write_file(text_file, std::string_view("this is not a model at all, it is text")).ok());
  const Outcome wrong = reef("inspect " + text_file);
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.text.find("text.tflite"), std::string::npos);
}

TEST_F(CommandLine, CheckWritesTheRewrittenModelWholeOrNotAtAll) {
  QuantizedModel model;
  const std::int32_t x = model.input({1, 8, 8, 4});
  const std::string given = (folder_ / "given.tflite").string(), written = (folder_ / "written.tflite").string();
  ASSERT_TRUE(tflite::save_model(model.finish({model.unary("HARD_SWISH", x)}), given).ok());
  EXPECT_EQ(reef("check " + given + " --no-rewrite by-table --write-rewritten " + written).exit_code, 0);
  const auto rewritten = tflite::load_model(written);
  ASSERT_TRUE(rewritten.ok()) << rewritten.status().message();
  for (const ir::Operator& op : rewritten->subgraphs[0].operators) EXPECT_NE(op.type, "HARD_SWISH");
  const Outcome nowhere = reef("check " + given + " --write-rewritten " + (folder_ / "none/written.tflite").string());
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_NE(nowhere.text.find("none"), std::string::npos) << nowhere.text;
}

TEST_F(CommandLine, RawInputsAreCheckedForSize) {
  const std::string input = (folder_ / "short.bin").string();
  ASSERT_TRUE(write_file(input, std::string_view("abc")).ok());
  const Outcome outcome = reef("run " + kModel + " --in " + input);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("3 bytes"), std::string::npos) << outcome.text;
}

TEST_F(CommandLine, OutputsAreTheSameForAnyThreadCountAndTwice) {
  std::vector<std::string> contents;
  for (const char* options : {"--threads 1", "--threads 1", "--threads 4"}) {
    const std::string out = (folder_ / "out").string();
    ASSERT_EQ(reef("run " + kModel + " --out " + out + " " + options).exit_code, 0);
    const auto file = read_file(out + "/out0.bin", 1 << 20);
    ASSERT_TRUE(file.ok());
    contents.emplace_back(reinterpret_cast<const char*>(file->data()), file->size());
  }
  EXPECT_EQ(contents[0], contents[1]);
  EXPECT_EQ(contents[0], contents[2]);
}

TEST_F(CommandLine, JsonIsOneObject) {
  for (const std::string& arguments :
       {"run " + kModel + " --json --bench 2 --profile", "inspect " + kModel + " --json"}) {
    const Outcome outcome = reef(arguments);
    EXPECT_EQ(outcome.exit_code, 0);
    const auto json = nlohmann::json::parse(outcome.text, nullptr, false);
    EXPECT_TRUE(json.is_object()) << arguments;
  }
}

TEST_F(CommandLine, InputsCanBeResized) {
  const Outcome outcome = reef("run " + kModel + " --input-shape 2,96,96,3");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("[2, 96, 96, 3]"), std::string::npos) << outcome.text;
  EXPECT_EQ(reef("run " + kModel + " --input-shape 0,x").exit_code, 1);
  EXPECT_EQ(reef("run " + kModel + " --input-shape 1,1,1,7").exit_code, 1);
}

TEST_F(CommandLine, LimitsAreKept) {
  const Outcome outcome = reef("run " + kModel + " --memory-limit 0.001 --input-shape 64,96,96,3");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.text.find("limit"), std::string::npos) << outcome.text;
}

}  // namespace
}  // namespace reef::testing

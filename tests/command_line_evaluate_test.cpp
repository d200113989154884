// SPDX-License-Identifier: Apache-2.0
// reef eval, reef compare, and preprocessing that travels with a model, as a user calls them.
#include "command_line.h"

#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "data/preprocess.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"

namespace reef::testing {
namespace {

const std::string kModels = REEF_SOURCE_DIR "/models/";
const std::string kCreatures = kModels + "reef_creatures_int8.tflite";
const std::string kFloat = kModels + "reef_creatures_float.tflite";
const std::string kPictures = " --data " + kModels + "images --labels " + kModels + "reef_creatures_labels.txt";

nlohmann::json json_of(const Outcome& outcome) {
  const std::size_t brace = outcome.text.find("{\n");
  return nlohmann::json::parse(brace == std::string::npos ? "" : outcome.text.substr(brace), nullptr, false);
}

TEST_F(CommandLine, EvalMeasuresTheShippedModels) {
  for (const std::string& model : {kCreatures, kFloat}) {
    const Outcome outcome = reef("eval " + model + kPictures + " --metric top1 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
    const auto json = json_of(outcome);
    EXPECT_EQ(json["samples"], 16);
    EXPECT_EQ(json["value"], 1.0) << outcome.text;
    EXPECT_EQ(json["metric"], "top1");
  }
  // Pictures that are far too dark: the option does something.
  const Outcome dark = reef("eval " + kFloat + kPictures + " --metric top1 --json --preprocess scale=1/100000");
  EXPECT_LT(json_of(dark)["value"], 0.5) << dark.text;
  const Outcome text = reef("eval " + kCreatures + kPictures + " --metric top5 --limit 4 --shuffle 3");
  EXPECT_NE(text.text.find("4 of 16 samples"), std::string::npos) << text.text;
  EXPECT_NE(text.text.find("top5 100.00 %"), std::string::npos) << text.text;
}

TEST_F(CommandLine, EvalRunsCompiledModelsOnTheVirtualDevice) {
  ASSERT_EQ(reef("compile " + kCreatures + " -o " + folder_.string()).exit_code, 0);
  const std::string compiled = (folder_ / "reef_creatures_int8_edgetpu.tflite").string();
  const Outcome outcome = reef("eval " + compiled + kPictures + " --metric top1 --device virtual --json --limit 6");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_EQ(json_of(outcome)["value"], 1.0);
  EXPECT_EQ(reef("eval " + compiled + kPictures + " --metric top1 --limit 4").exit_code, 0);  // where it can run
  const Outcome on_cpu = reef("eval " + compiled + kPictures + " --metric top1 --device cpu");
  EXPECT_EQ(on_cpu.exit_code, 1);
  EXPECT_NE(on_cpu.text.find("--device virtual"), std::string::npos) << on_cpu.text;
}

TEST_F(CommandLine, EvalSaysWhatIsMissing) {
  const Outcome no_labels = reef("eval " + kCreatures + " --data " + kModels + "images --metric top1");
  EXPECT_EQ(no_labels.exit_code, 1);
  EXPECT_NE(no_labels.text.find("does not say what is right"), std::string::npos) << no_labels.text;
  EXPECT_EQ(reef("eval " + kCreatures + kPictures + " --metric accuracy").exit_code, 2);
  const Outcome wrong = reef("eval " + kCreatures + kPictures + " --metric top1 --preprocess blur");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.text.find("'blur' is not known"), std::string::npos);
  const Outcome no_data = reef("eval " + kCreatures + " --data " + kCreatures + " --metric top1");
  EXPECT_EQ(no_data.exit_code, 1);
  EXPECT_NE(no_data.text.find("no folder of pictures, no .npz, no .npy, no TFRecord"), std::string::npos)
      << no_data.text;
}

TEST_F(CommandLine, RunAndEvalRepeatStoredPreprocessing) {
  auto model = tflite::load_model(kFloat);
  ASSERT_TRUE(model.ok());
  // The network takes 0 to 1; this recipe gives the same by other means.
  data::store_preprocess(*data::parse_preprocess("mean=0,std=255"), *model);
  const std::string stored = (folder_ / "stored.tflite").string();
  ASSERT_TRUE(tflite::save_model(*model, stored).ok());
  const std::string picture =
      " --image " + kModels + "images/crab_1.jpg --labels " + kModels + "reef_creatures_labels.txt --top 1";
  const Outcome run = reef("run " + stored + picture);
  EXPECT_NE(run.text.find("preprocessing std=255 (stored in the model)"), std::string::npos) << run.text;
  EXPECT_NE(run.text.find("crab"), std::string::npos) << run.text;
  const Outcome eval = reef("eval " + stored + kPictures + " --metric top1");
  EXPECT_NE(eval.text.find("stored in the model"), std::string::npos) << eval.text;
  EXPECT_NE(eval.text.find("top1 100.00 %"), std::string::npos) << eval.text;
  const Outcome given = reef("run " + stored + picture + " --preprocess none --json");
  EXPECT_EQ(given.text.find("stored in"), std::string::npos) << given.text;
}

TEST_F(CommandLine, CompareRanksLayersAndWritesAPage) {
  const std::string page = (folder_ / "report.html").string();
  const std::string models =
      "compare " + kFloat + " " + kCreatures + " --data " + kModels + "images --limit 4 --effects 1";
  const Outcome outcome = reef(models + " -o " + page);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("25 layers on 4 samples"), std::string::npos) << outcome.text;
  std::ifstream file(page);
  std::stringstream html;
  html << file.rdbuf();
  EXPECT_NE(html.str().find("<svg"), std::string::npos);
  const auto json = json_of(reef(models + " --json"));
  ASSERT_EQ(json["layers"].size(), 25u);
  EXPECT_GE(json["layers"][0]["share"], json["layers"][1]["share"]);
  EXPECT_EQ(json["layers"][0]["histogram"]["counts"].size(), 64u);
  EXPECT_EQ(reef("compare " + kFloat + " " + kFloat + " --data " + kModels + "images").exit_code, 1);
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// Shards, parts of a set and several devices, as a user names them.
#include "command_line.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "data/shard_files.h"
#include "formats/tar/test_tars.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

const std::string kModels = REEF_SOURCE_DIR "/models/";
const std::string kCreatures = kModels + "reef_creatures_int8.tflite";
const std::string kLabels = " --labels " + kModels + "reef_creatures_labels.txt";

nlohmann::json json_of(const Outcome& outcome) {
  const std::size_t brace = outcome.text.find("{\n");
  return nlohmann::json::parse(brace == std::string::npos ? "" : outcome.text.substr(brace), nullptr, false);
}

class DataOnCommandLine : public CommandLine {
 protected:
  // The pictures that come with Reef as shards of four, labelled by their names.
  std::vector<std::string> write_shards() const {
    std::vector<fs::path> pictures;
    for (const auto& entry : fs::directory_iterator(kModels + "images")) {
      if (data::is_picture_name(entry.path().string())) pictures.push_back(entry.path());
    }
    std::sort(pictures.begin(), pictures.end());
    std::vector<std::string> shards;
    std::vector<tar::testing::File> files;
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      const Bytes bytes = *read_file(pictures[i].string(), 1 << 24);
      const std::string stem = pictures[i].stem().string();
      files.push_back({stem + pictures[i].extension().string(), {bytes.data(), bytes.data() + bytes.size()}});
      files.push_back({stem + ".cls", stem.substr(0, stem.rfind('_'))});
      if (files.size() < 8 && i + 1 < pictures.size()) continue;
      shards.push_back((folder_ / fmt::format("s-{:03}.tar", shards.size())).string());
      EXPECT_TRUE(write_file(shards.back(), tar::testing::archive(files)).ok());
      files.clear();
    }
    return shards;
  }
};

TEST_F(DataOnCommandLine, ShardsAreTakenWhereFoldersAre) {
  const std::vector<std::string> shards = write_shards();
  ASSERT_GE(shards.size(), 3u);
  std::string words;
  for (const std::string& shard : shards) words += " " + shard;  // as a shell expands a pattern
  for (const std::string& data : {words, " '" + (folder_ / "s-*.tar").string() + "'", " " + folder_.string()}) {
    const Outcome outcome = reef("eval " + kCreatures + " --data" + data + kLabels + " --metric top1 --json");
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
    EXPECT_EQ(json_of(outcome)["samples"], 16) << outcome.text;
    EXPECT_EQ(json_of(outcome)["value"], 1.0) << outcome.text;
  }
  // The model may stand behind the shards.
  const Outcome behind = reef("eval --metric top1 --json" + kLabels + " --data" + words + " " + kCreatures);
  EXPECT_EQ(json_of(behind)["samples"], 16) << behind.text;
  const std::string quantized = (folder_ / "q.tflite").string();
  const Outcome made =
      reef("quantize " + kModels + "reef_creatures_float.tflite --data" + words + " -v -o " + quantized);
  EXPECT_EQ(made.exit_code, 0) << made.text;
  EXPECT_NE(made.text.find("samples were fetched: reading"), std::string::npos) << made.text;
  const Outcome learned = reef("learn imprint " + kCreatures + " --data" + words + kLabels + " --no-curve -o " +
                               (folder_ / "l.tflite").string());
  EXPECT_EQ(learned.exit_code, 0) << learned.text;
}

TEST_F(DataOnCommandLine, PartsAreTheWhole) {
  (void)write_shards();
  const std::string common =
      "eval " + kCreatures + " --data " + folder_.string() + kLabels + " --metric top1 --json --shuffle 5";
  std::int64_t samples = 0;
  double right = 0;
  for (int part = 0; part < 3; ++part) {
    const auto json = json_of(reef(common + fmt::format(" --shard {}/3", part)));
    samples += json["samples"].get<std::int64_t>();
    right += json["details"]["right"].get<double>();
  }
  EXPECT_EQ(samples, 16);
  EXPECT_EQ(right, 16);
  const Outcome wrong = reef(common + " --shard 3/3");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_NE(wrong.text.find("'3/3' is no part"), std::string::npos) << wrong.text;
}

TEST_F(DataOnCommandLine, BadShardsAreASentence) {
  const std::vector<std::string> shards = write_shards();
  const std::string common = "eval " + kCreatures + kLabels + " --metric top1 --data ";
  fs::resize_file(shards[1], 700);
  const Outcome cut = reef(common + folder_.string());
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_NE(cut.text.find("s-001.tar': it is cut off"), std::string::npos) << cut.text;
  const Outcome absent = reef(common + "'" + (folder_ / "t-*.tar").string() + "'");
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_NE(absent.text.find("no file is called like"), std::string::npos) << absent.text;
  const Outcome far = reef(common + "gs://bucket/set.tfrecord");
  EXPECT_NE(far.text.find("does not fetch data"), std::string::npos) << far.text;
}

TEST_F(DataOnCommandLine, SeveralDevicesGiveTheSame) {
  ASSERT_EQ(reef("compile " + kCreatures + " -o " + folder_.string()).exit_code, 0);
  const std::string compiled = (folder_ / "reef_creatures_int8_edgetpu.tflite").string();
  const std::string data = " --data " + kModels + "images" + kLabels;
  const auto three = json_of(reef("eval " + compiled + data + " --metric top1 --device virtual --devices 3 --json"));
  EXPECT_EQ(three["value"], 1.0);
  ASSERT_EQ(three["replicas"]["devices"].size(), 3u) << three.dump();
  std::int64_t samples = 0;
  for (const auto& device : three["replicas"]["devices"]) samples += device["samples"].get<std::int64_t>();
  EXPECT_EQ(samples, 16);
  std::vector<std::string> learned;
  for (const int devices : {1, 3}) {
    learned.push_back((folder_ / fmt::format("l{}.tflite", devices)).string());
    const Outcome outcome = reef("learn softmax " + compiled + data + " --no-curve --device virtual --devices " +
                                 std::to_string(devices) + " -o " + learned.back());
    ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  }
  EXPECT_EQ(*read_file(learned[0], 1 << 26), *read_file(learned[1], 1 << 26)) << "the learned model is the same file";
  const Outcome none = reef("eval " + kCreatures + data + " --metric top1 --devices 2");
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.text.find("is not compiled for the Edge TPU"), std::string::npos) << none.text;
}

TEST_F(DataOnCommandLine, ThroughputIsPredictedAndTried) {
  const Outcome outcome = reef("run " + kCreatures + " --devices 2 --throughput --bench 6 --device virtual --json");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const auto json = json_of(outcome);
  ASSERT_EQ(json["predictions"].size(), 2u);
  EXPECT_GT(json["predictions"][1]["per_second"], json["predictions"][0]["per_second"]);
  EXPECT_EQ(json["others"].size(), 1u) << "two copies, or two segments";
  std::int64_t samples = 0;
  for (const auto& device : json["trial"]["devices"]) samples += device["samples"].get<std::int64_t>();
  EXPECT_EQ(samples, 6);
  const Outcome text = reef("run " + kCreatures + " --devices 2 --throughput --link pcie");
  EXPECT_NE(text.text.find("2 devices do"), std::string::npos) << text.text;
  EXPECT_NE(text.text.find("(simulated"), std::string::npos);
}

}  // namespace
}  // namespace reef::testing

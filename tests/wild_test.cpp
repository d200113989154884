// SPDX-License-Identifier: Apache-2.0
// Compiled files from public repositories that the virtual device was not built on, as their owners would try them:
// each is inspected and run, and compared with the model it was compiled from where that is known.
//
// Files that take more than a few seconds on one core are left out unless REEF_ALL_WILD is set; the whole then takes
// about three minutes.
#include <map>
#include <set>

#include "command_line.h"
#include "zoo.h"

namespace reef::testing {
namespace {

namespace fs = std::filesystem;

// Google's program is wrong: it caches one block of weight lines in the order of one loop nest and walks it in another
// order for a part of the picture. Computed with the lines in that order, the results are those of the virtual device.
const std::map<std::string, std::string> kWrongPrograms = {
    {"srgan",
     "third part, the 9x9 convolution: the lines of 4 passes of 4 words (loops x324, x400, x4) are walked in 2 passes "
     "of 8 for columns 308 to 383 (loops x648, x380, x2)"},
    {"PranilJ_saved_model",
     "op 11, CONV_2D: the lines are cached by row, column and channel (row 1152, loops x144, x272), and "
     "walked by channel, row and column for the right half of the picture (row 2737, loops x9, x256, "
     "x16)"}};

// Seconds on one core, measured: 30, 45, 17, 9, 9, 9, 5 and 5.
const std::set<std::string> kSlow = {"srgan",
                                     "yolov8n_640",
                                     "Sandhya1708_yolov5n-int8",
                                     "posenet_721_1281",
                                     "google-coral_bodypix_mobilenet_v1_075_1280_720_16_quant_deco",
                                     "google-coral_bodypix_mobilenet_v1_075_720_1280_16_quant_deco",
                                     "google-coral_bodypix_mobilenet_v1_075_768_576_16_quant_decod",
                                     "PranilJ_saved_model"};

struct WildFile {
  std::string name, compiled, source;  // source: empty where it is not known
};

std::vector<WildFile> wild_files(const std::string& folder) {
  std::vector<WildFile> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path compiled = entry.path() / "compiled_edgetpu.tflite", source = entry.path() / "source.tflite";
    if (!fs::exists(compiled)) continue;
    files.push_back({entry.path().filename(), compiled.string(), fs::exists(source) ? source.string() : ""});
  }
  std::sort(files.begin(), files.end(), [](const WildFile& a, const WildFile& b) { return a.name < b.name; });
  return files;
}

bool is_left_out(const WildFile& file) { return kSlow.contains(file.name) && std::getenv("REEF_ALL_WILD") == nullptr; }

TEST(Wild, FilesAreInspectedAndHoldNothingUnknown) {
  REEF_SKIP_WITHOUT_WILD(folder);
  int files = 0;
  for (const WildFile& file : wild_files(folder)) {
    ++files;
    const Outcome shown = reef(fmt::format("inspect '{}'", file.compiled));
    EXPECT_EQ(shown.exit_code, 0) << file.name << ": " << shown.text;
    const Outcome unknown = reef(fmt::format("inspect --unknown '{}'", file.compiled));
    EXPECT_NE(unknown.text.find("nothing unknown"), std::string::npos) << file.name << ": " << unknown.text;
  }
  EXPECT_GE(files, 45);
}

TEST(Wild, FilesWithoutTheirSourceRunToTheEnd) {
  REEF_SKIP_WITHOUT_WILD(folder);
  int files = 0;
  for (const WildFile& file : wild_files(folder)) {
    if (!file.source.empty() || is_left_out(file)) continue;
    ++files;
    const Outcome ran = reef(fmt::format("run --device virtual '{}'", file.compiled));
    EXPECT_EQ(ran.exit_code, 0) << file.name << ": " << ran.text;
  }
  EXPECT_GE(files, 18);
}

TEST(Wild, FilesComputeWhatTheirSourceDoes) {
  REEF_SKIP_WITHOUT_WILD(folder);
  int files = 0;
  for (const WildFile& file : wild_files(folder)) {
    if (file.source.empty() || is_left_out(file)) continue;
    ++files;
    const Outcome verified = reef(fmt::format("verify '{}' '{}'", file.source, file.compiled));
    if (const auto wrong = kWrongPrograms.find(file.name); wrong != kWrongPrograms.end()) {
      EXPECT_NE(verified.text.find(" values differ"), std::string::npos) << file.name << ": " << verified.text;
      EXPECT_NE(verified.exit_code, 0) << file.name << " is known to be wrong: " << wrong->second;
    } else {
      EXPECT_EQ(verified.exit_code, 0) << file.name << ": " << verified.text;
      EXPECT_NE(verified.text.find(" agree"), std::string::npos) << file.name << ": " << verified.text;
    }
  }
  EXPECT_GE(files, 15);
}

// Programs with stores that step, transposed clips and partial fences pass the soundness checker too. The last of them
// is ordered by timing alone in places, as Google made it.
TEST(Wild, FilesPassTheSoundnessChecker) {
  REEF_SKIP_WITHOUT_WILD(folder);
  for (const char* name : {"google-coral_voice_commands_v0.8", "face_detection", "pperonski_slim",
                           "google-coral_ssd_mobilenet_v2_coco_quant_postprocess_segment", "google-coral_testconv1"}) {
    const Outcome audited = reef(fmt::format("audit '{}/{}/compiled_edgetpu.tflite'", folder, name));
    EXPECT_EQ(audited.exit_code, 0) << name << ": " << audited.text;
    EXPECT_NE(audited.text.find("\nsound"), std::string::npos) << name << ": " << audited.text;
  }
  const Outcome timed = reef(fmt::format("audit '{}/willcmartin_ggcnn_model/compiled_edgetpu.tflite'", folder));
  EXPECT_NE(timed.text.find("all ordered only by timing"), std::string::npos) << timed.text;
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// Every TFLite model of the zoo survives load and save. The zoo is not part of the repository: REEF_ZOO names its
// folder, else ../shared/zoo beside the checkout is taken if it exists.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/file.h"
#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "ir/verify.h"

namespace reef {
namespace {

std::vector<std::string> zoo_models() {
  const char* chosen = std::getenv("REEF_ZOO");
  const std::filesystem::path folder = chosen ? chosen : REEF_SOURCE_DIR "/../shared/zoo";
  std::vector<std::string> paths;
  std::error_code missing;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, missing)) {
    if (entry.path().extension() == ".tflite") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

TEST(Zoo, EveryModelSurvivesLoadAndSave) {
  const std::vector<std::string> paths = zoo_models();
  if (paths.empty()) GTEST_SKIP() << "no zoo: set REEF_ZOO to a folder with .tflite files";
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    std::vector<std::string> notes;
    const auto model = tflite::load_model(path, &notes);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_TRUE(notes.empty()) << notes[0];
    const auto saved = tflite::write_model(*model);
    ASSERT_TRUE(saved.ok()) << saved.status().message();
    const auto again = tflite::read_model(Bytes(*saved));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_TRUE(*again == *model);
    const auto saved_again = tflite::write_model(*again);
    ASSERT_TRUE(saved_again.ok()) << saved_again.status().message();
    EXPECT_TRUE(*saved_again == *saved);
  }
}

}  // namespace
}  // namespace reef

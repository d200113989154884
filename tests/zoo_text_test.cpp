// SPDX-License-Identifier: Apache-2.0
// Every model of the zoo verifies, and its text form gives back the same model.
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "ir/text.h"

namespace reef {
namespace {

std::filesystem::path zoo_folder() {
  const char* folder = std::getenv("REEF_ZOO");
  return folder ? folder : REEF_SOURCE_DIR "/../shared/zoo";
}

TEST(ZooText, VerifiesAndSurvives) {
  std::error_code error;
  if (!std::filesystem::is_directory(zoo_folder(), error)) {
    GTEST_SKIP() << "no models at " << zoo_folder() << "; set REEF_ZOO to a folder of .tflite files";
  }
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(zoo_folder())) {
    if (entry.path().extension() != ".tflite") continue;
    SCOPED_TRACE(entry.path().string());
    ++files;
    const Result<ir::Model> model = tflite::load_model(entry.path().string());
    if (!model.ok()) {
      ADD_FAILURE() << model.status().message();
      continue;
    }
    const std::string text = ir::print(*model);
    const Result<ir::Model> again = ir::parse(text);
    if (!again.ok()) {
      ADD_FAILURE() << again.status().message();
      continue;
    }
    EXPECT_TRUE(*again == *model);
  }
  EXPECT_GT(files, 0u);
}

}  // namespace
}  // namespace reef

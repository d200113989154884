// SPDX-License-Identifier: Apache-2.0
// Every model of the collection verifies, and its text form gives back the same model.
#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "ir/text.h"
#include "zoo.h"

namespace reef {
namespace {

TEST(ZooText, VerifiesAndSurvives) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::vector<std::string> paths = testing::tflite_files(zoo);
  EXPECT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const Result<ir::Model> model = tflite::load_model(path);
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
}

}  // namespace
}  // namespace reef

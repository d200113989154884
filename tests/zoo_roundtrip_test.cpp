// SPDX-License-Identifier: Apache-2.0
// Every TFLite model of the collection survives load and save.
#include <gtest/gtest.h>

#include "formats/tflite/reader.h"
#include "formats/tflite/writer.h"
#include "zoo.h"

namespace reef {
namespace {

TEST(Zoo, EveryModelSurvivesLoadAndSave) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::vector<std::string> paths = testing::tflite_files(zoo);
  EXPECT_FALSE(paths.empty());
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

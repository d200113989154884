// SPDX-License-Identifier: Apache-2.0
#include "data/labels.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/file.h"

namespace reef::data {
namespace {

std::vector<std::string> names_in(const std::string& text) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("reef_labels_" + std::to_string(::getpid()) + ".txt")).string();
  EXPECT_TRUE(write_file(path, std::string_view(text)).ok());
  const auto names = load_class_names(path);
  std::filesystem::remove(path);
  EXPECT_TRUE(names.ok());
  return names.ok() ? *names : std::vector<std::string>{};
}

using Names = std::vector<std::string>;

TEST(Labels, NumbersCanBeLabels) {
  EXPECT_EQ(names_in("0\n1\n2\n"), (Names{"0", "1", "2"}));
  EXPECT_EQ(names_in("7 \n3\t\n"), (Names{"7", "3"}));  // spaces behind them do not make them numbers of labels
}

TEST(Labels, LinesMayBeNumbered) {
  EXPECT_EQ(names_in("0 background\n1: cat\n"), (Names{"background", "cat"}));
  EXPECT_EQ(names_in("2:cat\r\n0:dog\r\n"), (Names{"dog", "", "cat"}));
}

TEST(Labels, WindowsMarksAreNoPartOfTheFirstLabel) {
  EXPECT_EQ(names_in("\xEF\xBB\xBF"
                     "cat\r\ndog\r\n"),
            (Names{"cat", "dog"}));
  EXPECT_EQ(names_in("\xEF\xBB\xBF"
                     "0 cat\n"),
            (Names{"cat"}));
}

}  // namespace
}  // namespace reef::data

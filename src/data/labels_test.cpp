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

std::vector<double> boxes_in(const std::string& text) {
  const auto boxes = read_boxes(text, "a.txt");
  EXPECT_TRUE(boxes.ok()) << boxes.status().message();
  return boxes.ok() ? boxes->values : std::vector<double>{};
}

// Label files of all of Ultralytics' tasks say where things are.
TEST(Labels, BoxesOfEveryTask) {
  const std::vector<double> box = {0.5, 0.5, 0.5, 0.25, 3};
  EXPECT_EQ(boxes_in("3 0.5 0.5 0.5 0.25\n"), box);
  EXPECT_EQ(boxes_in("3 0.5 0.5 0.5 0.25 0.9\n"), box);                              // with a score
  EXPECT_EQ(boxes_in("3 0.25 0.5 0.5 0.375 0.75 0.5 0.5 0.625\n"), box);             // turned
  EXPECT_EQ(boxes_in("3 0.25 0.5 0.5 0.375 0.75 0.625\n"), box);                     // a mask's outline
  EXPECT_EQ(boxes_in("3 0.5 0.5 0.5 0.25 0.1 0.2 2 0.3 0.4 0\n"), box);              // two keypoints, visible or not
  EXPECT_EQ(boxes_in("3 0.5 0.5 0.5 0.25 0.1 0.2 2 0.3 0.4 2 0.5 0.5 1\n\n"), box);  // three
  EXPECT_FALSE(read_boxes("3 0.5 0.5 0.5\n", "a.txt").ok());
  EXPECT_FALSE(read_boxes("3 0.5 0.5 0.5 0.25 crab\n", "a.txt").ok());
  EXPECT_FALSE(read_boxes("a crab on a stone\n", "a.txt").ok());
}

}  // namespace
}  // namespace reef::data

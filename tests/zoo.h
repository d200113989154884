// SPDX-License-Identifier: Apache-2.0
// Where the collection of foreign models is, if it is there: $REEF_ZOO, or shared/zoo beside the repository. And a
// second one of compiled files that the virtual device was not built on: $REEF_WILD, or the folder `wild` beside the
// first.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace reef::testing {

// Empty when the collection is absent; tests then skip themselves, saying so.
std::string zoo_folder();

// Empty when that collection is absent.
std::string wild_folder();

// What Google's compilers did, recorded in a folder `truth` beside the collection; empty when it is absent.
inline std::string truth_folder() {
  const std::string zoo = zoo_folder();
  const std::string folder = zoo + "/../truth";
  return !zoo.empty() && std::filesystem::is_directory(folder) ? folder : "";
}

// Every .tflite below `folder`, sorted.
inline std::vector<std::string> tflite_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".tflite") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace reef::testing

#define REEF_SKIP_WITHOUT_ZOO(folder)                       \
  const std::string folder = ::reef::testing::zoo_folder(); \
  if (folder.empty()) GTEST_SKIP() << "the model collection is absent: set REEF_ZOO to its folder"

#define REEF_SKIP_WITHOUT_WILD(folder)                       \
  const std::string folder = ::reef::testing::wild_folder(); \
  if (folder.empty()) GTEST_SKIP() << "the collection of other compiled files is absent: set REEF_WILD to its folder"

#define REEF_SKIP_WITHOUT_TRUTH(folder)                                                                         \
  const std::string folder = ::reef::testing::truth_folder();                                                   \
  if (folder.empty())                                                                                           \
  GTEST_SKIP()                                                                                                  \
      << "what Google's compilers did is not recorded: set REEF_ZOO to a model collection that has the folder " \
         "truth (mapping.json, logs) beside it"

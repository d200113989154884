// SPDX-License-Identifier: Apache-2.0
// What the source tree promises about itself.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

namespace reef {
namespace {

namespace fs = std::filesystem;

// Product code, by path from the root; tests may do as they like.
std::map<std::string, std::string> product_sources() {
  std::map<std::string, std::string> result;
  const fs::path root = REEF_SOURCE_DIR;
  for (const char* folder : {"src", "apps", "bindings"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".cpp") && !name.ends_with(".h")) continue;
      if (name.ends_with("_test.cpp") || name.ends_with("_fuzz.cpp") || name.ends_with("_bench.cpp")) continue;
      std::stringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      result[fs::relative(entry.path(), root).generic_string()] = text.str();
    }
  }
  return result;
}

// Whoever makes an interpreter decides whose rules it follows and what bounds it. Constants were once folded by the
// rules of TFLite 2.9 and run by those of the current release, because ten places decided: now evaluate.cpp does, and
// the two that run models for users, with the users' options.
TEST(Structure, InterpretersAreMadeInOnePlace) {
  const std::map<std::string, std::string> kAllowed = {
      {"src/execute/cpu/interpreter.cpp", "defines it"},
      {"src/execute/cpu/evaluate.cpp", "the evaluator"},
      {"apps/reef/cmd_run.cpp", "reef run: resizes inputs before it prepares"},
      {"bindings/c/interpreter.cpp", "libreef: resizes inputs before it prepares"},
  };
  const std::regex makes("(^|[^:\\w])(cpu::|reef::cpu::)?Interpreter::create\\s*\\(");
  int found = 0;
  for (const auto& [path, text] : product_sources()) {
    if (!std::regex_search(text, makes)) continue;
    ++found;
    EXPECT_TRUE(kAllowed.contains(path)) << path << " makes an interpreter of its own: use cpu::Evaluator, or "
                                         << "cpu::prepared (execute/cpu/evaluate.h)";
  }
  EXPECT_EQ(found, static_cast<int>(kAllowed.size())) << "a file on the list makes none any more, or was moved";
}

// The release with known defects is for those who ask for it by name.
TEST(Structure, NobodyButTheUserAsksForTheOldRelease) {
  const std::map<std::string, std::string> kAllowed = {
      {"apps/reef/cmd_run.cpp", "--tflite 2.9"},
      {"apps/reef/cmd_eval.cpp", "--tflite 2.9"},
      {"bindings/c/interpreter.cpp", "reef_options.tflite_2_9"},
  };
  for (const auto& [path, text] : product_sources()) {
    if (path.starts_with("src/ops/")) continue;  // kernels ask which release is wanted
    EXPECT_TRUE(text.find("k2_9") == std::string::npos || kAllowed.contains(path)) << path;
  }
}

}  // namespace
}  // namespace reef

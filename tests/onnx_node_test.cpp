// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of its operators, and what docs/onnx.md says about them. And the same models, damaged.
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "base/file.h"
#include "formats/onnx/reader.h"
#include "import/onnx/converter.h"
#include "import/onnx/importer.h"
#include "onnx_node_runner.h"

namespace reef::test {
namespace {

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(OnnxNodeTests, PassAsDocumented) {
  const std::vector<std::string> folders = node_test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data is absent: install libonnx-testdata";
  std::vector<NodeTestResult> results;
  int passed = 0, counted = 0;
  for (const std::string& folder : folders) {
    results.push_back(run_node_test(folder));
    counted += results.back().outcome != NodeTestOutcome::kAside;
    passed += results.back().outcome == NodeTestOutcome::kPassed;
  }
  EXPECT_GE(passed, 0.95 * counted);
  const std::string document = read_text(REEF_SOURCE_DIR "/docs/onnx.md");
  EXPECT_NE(document.find(node_test_report(results)), std::string::npos)
      << "docs/onnx.md is stale: build/tests/onnx_node_report --docs docs/onnx.md writes it anew";
}

TEST(OnnxNodeTests, TheDocumentListsEveryConverter) {
  const std::string document = read_text(REEF_SOURCE_DIR "/docs/onnx.md");
  EXPECT_NE(document.find(converter_list()), std::string::npos)
      << "docs/onnx.md is stale: build/tests/onnx_node_report --docs docs/onnx.md writes it anew";
}

// Bytes of models changed at random: an error or a model, never a crash or a hang.
TEST(OnnxHostile, DamagedModelsAreErrorsOrModels) {
  const std::vector<std::string> folders = node_test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data is absent: install libonnx-testdata";
  std::mt19937 random(1);
  const char* rounds_text = std::getenv("REEF_HOSTILE_ROUNDS");
  const int rounds = rounds_text != nullptr ? std::atoi(rounds_text) : 3;
  int imported = 0, refused = 0;
  for (const std::string& folder : folders) {
    const auto file = read_file(folder + "/model.onnx", 1 << 20);
    if (!file.ok() || file->size() > 20000) continue;
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::uint8_t> damaged(file->span().begin(), file->span().end());
      const int changes = 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < changes; ++i) damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
      const auto model = onnx::read_model(Bytes(std::move(damaged)));
      const bool is_fine = model.ok() && import::import_onnx(*model, {}).ok();
      ++(is_fine ? imported : refused);
    }
  }
  EXPECT_GT(imported, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace reef::test

// SPDX-License-Identifier: Apache-2.0
// ONNX's own tests of its operators, and what docs/onnx.md says about them. And the same models, damaged.
#include <gtest/gtest.h>

#include <cstdint>
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

// A model whose numbers and connections are changed, which bytes changed at random seldom reach.
void disturb(onnx::Model& model, std::mt19937& random) {
  static constexpr std::int64_t kOdd[] = {0,  1,  -1,   2,         3,         -2,        7,
                                          64, -7, 1000, 1LL << 31, 1LL << 40, INT64_MAX, INT64_MIN};
  const auto odd = [&] { return kOdd[random() % std::size(kOdd)]; };
  if (model.graph.nodes.empty()) return;
  onnx::Node& node = model.graph.nodes[random() % model.graph.nodes.size()];
  switch (random() % 6) {
    case 0:
    case 1:
      if (node.attributes.empty()) return;
      {
        onnx::Attribute& attribute = node.attributes[random() % node.attributes.size()];
        attribute.i = odd();
        attribute.f = static_cast<float>(odd());
        if (!attribute.ints.empty()) attribute.ints[random() % attribute.ints.size()] = odd();
        if (random() % 4 == 0) attribute.ints.resize(random() % 6, 1);
      }
      return;
    case 2:
      if (!node.inputs.empty()) node.inputs[random() % node.inputs.size()].clear();
      return;
    case 3:
      if (node.inputs.size() > 1) std::swap(node.inputs[0], node.inputs[1 + random() % (node.inputs.size() - 1)]);
      return;
    case 4: {
      if (model.graph.inputs.empty()) return;
      onnx::ValueInfo& info = model.graph.inputs[random() % model.graph.inputs.size()];
      if (random() % 3 == 0) info.dims.resize(random() % 7, {2, ""});
      if (!info.dims.empty()) info.dims[random() % info.dims.size()].size = odd();
      return;
    }
    default: {
      if (model.graph.inputs.empty()) return;
      model.graph.inputs[random() % model.graph.inputs.size()].type = static_cast<onnx::ElementType>(random() % 24);
    }
  }
}

TEST(OnnxNodeTests, PassAsDocumented) {
  const std::vector<std::string> folders = node_test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data is absent: install libonnx-testdata";
  std::vector<NodeTestResult> results;
  int passed = 0, as_they_are = 0, counted = 0;
  for (const std::string& folder : folders) {
    results.push_back(run_node_test(folder));
    const bool has_passed = results.back().outcome == NodeTestOutcome::kPassed;
    counted += results.back().outcome != NodeTestOutcome::kAside;
    passed += has_passed;
    as_they_are += has_passed && results.back().fixed_inputs.empty();
  }
  EXPECT_GE(passed, 0.98 * counted);
  EXPECT_GE(as_they_are, 0.97 * counted) << "with no input fixed to its value";
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

TEST(OnnxHostile, OddNumbersAndConnectionsAreErrorsOrModels) {
  const std::vector<std::string> folders = node_test_folders();
  if (folders.empty()) GTEST_SKIP() << "ONNX's test data is absent: install libonnx-testdata";
  std::mt19937 random(2);
  int refused = 0;
  for (const std::string& folder : folders) {
    const auto file = read_file(folder + "/model.onnx", 1 << 20);
    if (!file.ok()) continue;
    for (int round = 0; round < 3; ++round) {
      auto model = onnx::read_model(*file);
      ASSERT_TRUE(model.ok());
      for (int i = 0; i < 2; ++i) disturb(*model, random);
      refused += !import::import_onnx(*model, {}).ok();
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace reef::test

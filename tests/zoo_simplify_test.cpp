// SPDX-License-Identifier: Apache-2.0
// The collection's models compute the same when simplified, and imported ones end up channels-last.
#include <algorithm>

#include <gtest/gtest.h>

#include "compiler/front_end.h"
#include "formats/tflite/reader.h"
#include "passes/float/test_graph.h"
#include "zoo.h"

namespace reef {
namespace {

using passes::testing::count;
using passes::testing::expect_same;
using passes::testing::operators_of;

std::vector<std::string> onnx_files(const std::string& zoo) {
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(zoo + "/onnx")) return files;
  for (const auto& entry : std::filesystem::directory_iterator(zoo + "/onnx")) {
    if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ZooSimplify, ImportedModelsAreChannelsLast) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const std::vector<std::string> paths = onnx_files(zoo);
  EXPECT_FALSE(paths.empty());
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    compiler::FrontEndOptions options;
    options.simplify = false;
    const auto loaded = compiler::load_any_model(path, options);
    if (!loaded.ok()) {
      ADD_FAILURE() << loaded.status().message();
      continue;
    }
    const ir::Model after = expect_same(loaded->model, 2e-5);
    // Attention needs two: one to split heads off, one to join them.
    const std::int64_t attentions = count(after, "SOFTMAX") * (count(after, "BATCH_MATMUL") > 0 ? 1 : 0);
    EXPECT_LE(count(after, "TRANSPOSE"), 2 * attentions) << operators_of(after);
    EXPECT_LE(after.subgraphs[0].operators.size(), loaded->model.subgraphs[0].operators.size());
  }
}

// Files of others, most of them quantized: bit for bit, but for floating point.
TEST(ZooSimplify, TfliteModelsComputeTheSame) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  int simplified = 0;
  for (const std::string& path : testing::tflite_files(zoo)) {
    if (path.find("edgetpu") != std::string::npos || std::filesystem::file_size(path) > (8u << 20)) continue;
    SCOPED_TRACE(path);
    const Result<ir::Model> model = tflite::load_model(path);
    ASSERT_TRUE(model.ok());
    if (model->subgraphs.size() != 1) continue;
    const bool has_custom = std::any_of(model->subgraphs[0].operators.begin(), model->subgraphs[0].operators.end(),
                                        [](const ir::Operator& op) { return op.is_custom(); });
    if (has_custom) continue;
    expect_same(*model, 2e-5);
    ++simplified;
  }
  EXPECT_GT(simplified, 10);
}

}  // namespace
}  // namespace reef

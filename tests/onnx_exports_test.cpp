// SPDX-License-Identifier: Apache-2.0
// Graphs as PyTorch's exporters write them (tools/oracle/make_onnx_exports.py), with what ONNX Runtime computed:
// imported, simplified, and channels-last without more TRANSPOSE than the graph asks for.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "compiler/convert_driver.h"
#include "execute/cpu/interpreter.h"
#include "formats/onnx/reader.h"
#include "onnx_node_runner.h"

namespace reef::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChosenBoxes = "test_chosen_boxes";

std::vector<std::string> folders() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(REEF_SOURCE_DIR "/tests/onnx_exports")) {
    names.push_back(entry.path().filename().string());
  }
  std::erase(names, kChosenBoxes);  // it has an output more than ONNX's
  std::sort(names.begin(), names.end());
  return names;
}

class OnnxExports : public ::testing::TestWithParam<std::string> {
 protected:
  std::string folder() const { return REEF_SOURCE_DIR "/tests/onnx_exports/" + GetParam(); }
  std::string data() const { return folder() + "/test_data_set_0"; }
  // A model that carries scales may differ by a step of them: TFLite rounds halves otherwise than ONNX.
  bool is_quantized() const { return GetParam().find("quantized") != std::string::npos; }
  // Relative to the largest value. Cases that are meant to differ by more (activations that ONNX Runtime rounds and
  // Reef does not) say so in a file.
  double tolerance() const {
    double value = is_quantized() ? 0.02 : 1e-5;
    std::ifstream(folder() + "/tolerance") >> value;
    return value;
  }
};

TEST_P(OnnxExports, ComputeWhatOnnxRuntimeDoes) {
  const auto source = onnx::load_model(folder() + "/model.onnx");
  ASSERT_TRUE(source.ok()) << source.status().message();
  compiler::ConvertRequest request;
  request.model = folder() + "/model.onnx";
  const auto sizes = input_sizes(*source, data());
  ASSERT_TRUE(sizes.ok()) << sizes.status().message();
  request.front_end.input_shapes = *sizes;
  for (const auto* list : {&source->graph.inputs, &source->graph.outputs}) {
    for (const onnx::ValueInfo& info : *list) request.front_end.keep_nchw.push_back(info.name);
  }
  request.io = quantize::IoType::kFloat32;
  for (const bool simplify : {false, true}) {
    request.front_end.simplify = simplify;
    const auto converted = compiler::convert_model(request);
    ASSERT_TRUE(converted.ok()) << converted.status().message();
    const Status compared = compare_with_data(*source, converted->model, data(), tolerance());
    EXPECT_TRUE(compared.ok()) << compared.message() << (simplify ? " (simplified)" : " (as imported)");
  }
}

TEST_P(OnnxExports, NeedNoMoreTransposesThanTheGraphAsksFor) {
  const auto source = onnx::load_model(folder() + "/model.onnx");
  ASSERT_TRUE(source.ok());
  compiler::ConvertRequest request;
  request.model = folder() + "/model.onnx";
  const auto sizes = input_sizes(*source, data());
  ASSERT_TRUE(sizes.ok());
  request.front_end.input_shapes = *sizes;
  const auto converted = compiler::convert_model(request);
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  int allowed = -1;
  std::ifstream(folder() + "/transposes") >> allowed;
  const auto& operators = converted->model.subgraphs[0].operators;
  const auto is_transpose = [](const ir::Operator& op) { return op.type == "TRANSPOSE"; };
  EXPECT_LE(std::count_if(operators.begin(), operators.end(), is_transpose), allowed);
  if (!is_quantized()) return;
  for (const ir::Tensor& tensor : converted->model.subgraphs[0].tensors) {
    EXPECT_NE(tensor.type, ir::DataType::kFloat32) << tensor.name << ": it carries scales, so all of it is integers";
  }
}

// --pad-nms: the same rows, then -1 up to the largest number there can be, and how many are used.
TEST(OnnxNonMaxSuppression, CanHaveAFixedSize) {
  const std::string folder = REEF_SOURCE_DIR "/tests/onnx_exports/test_detection_with_nms";
  const auto source = onnx::load_model(folder + "/model.onnx");
  ASSERT_TRUE(source.ok());
  compiler::ConvertRequest request;
  request.model = folder + "/model.onnx";
  for (const auto* list : {&source->graph.inputs, &source->graph.outputs}) {
    for (const onnx::ValueInfo& info : *list) request.front_end.keep_nchw.push_back(info.name);
  }
  const auto varying = compiler::convert_model(request);
  request.front_end.pad_selections = true;
  const auto padded = compiler::convert_model(request);
  ASSERT_TRUE(varying.ok() && padded.ok());
  const auto rows_of = [&](const ir::Model& model) {
    auto created = cpu::Interpreter::create(std::make_shared<const ir::Model>(model), {});
    const std::unique_ptr<cpu::Interpreter>& interpreter = *created;
    EXPECT_TRUE(interpreter->prepare().ok());
    const auto input = interpreter->input_bytes(0);
    for (std::size_t i = 0; i + 4 <= input.size(); i += 4) {
      const float pixel = static_cast<float>(i * 7919 % 1009) / 504.5f - 1;
      std::memcpy(input.data() + i, &pixel, sizeof pixel);
    }
    EXPECT_TRUE(interpreter->invoke().ok());
    const auto rows = interpreter->output(0).values<std::int64_t>();
    std::vector<std::int64_t> result(rows.begin(), rows.end());
    if (interpreter->output_count() > 1) result.push_back(interpreter->output(1).values<std::int32_t>()[0]);
    return result;
  };
  const std::vector<std::int64_t> wanted = rows_of(varying->model);
  std::vector<std::int64_t> got = rows_of(padded->model);
  const auto count = static_cast<std::size_t>(got.back());
  got.pop_back();
  const ir::Subgraph& graph = padded->model.subgraphs[0];
  EXPECT_TRUE(graph.tensors[static_cast<std::size_t>(graph.outputs[1])].name.ends_with("_count"));
  ASSERT_EQ(got.size(), 3u * 2 * 4) << "three numbers, two classes, at most four boxes of each";
  ASSERT_EQ(wanted.size(), 3 * count);
  EXPECT_GT(count, 0u);
  EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), got.begin()));
  EXPECT_TRUE(std::all_of(got.begin() + static_cast<std::ptrdiff_t>(wanted.size()), got.end(),
                          [](std::int64_t number) { return number == -1; }));
}

// Nodes behind it need its size: it has the largest without being asked.
TEST(OnnxNonMaxSuppression, HasAFixedSizeWhereOthersNeedIt) {
  const std::string folder = std::string(REEF_SOURCE_DIR "/tests/onnx_exports/") + kChosenBoxes;
  const auto source = onnx::load_model(folder + "/model.onnx");
  ASSERT_TRUE(source.ok());
  compiler::ConvertRequest request;
  request.model = folder + "/model.onnx";
  request.front_end.keep_nchw = {"input"};
  const auto converted = compiler::convert_model(request);
  ASSERT_TRUE(converted.ok()) << converted.status().message();
  ir::Model model = converted->model;
  ir::Subgraph& graph = model.subgraphs[0];
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_TRUE(graph.tensors[static_cast<std::size_t>(graph.outputs[1])].name.ends_with("_count"));
  graph.outputs.pop_back();
  for (ir::Signature& signature : model.signatures) signature.outputs.pop_back();
  const Status compared = compare_with_data(*source, model, folder + "/test_data_set_0", 1e-5);
  EXPECT_TRUE(compared.ok()) << compared.message();
}

INSTANTIATE_TEST_SUITE_P(All, OnnxExports, ::testing::ValuesIn(folders()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace reef::test

// SPDX-License-Identifier: Apache-2.0
// The shipped models against vectors recorded from a real TFLite runtime (models/vectors.json): whole outputs, every
// op's result for generated inputs, and the label of every shipped picture.
#include <cstdio>
#include <filesystem>
#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/sha256.h"
#include "execute/cpu/interpreter.h"
#include "formats/tflite/reader.h"
#include "vector_case.h"

namespace reef::testing {
namespace {

const std::string kFolder = REEF_SOURCE_DIR "/models/";

nlohmann::json read_vectors() {
  const auto file = read_file(kFolder + "vectors.json", 1 << 26);
  if (!file.ok()) return {};
  return nlohmann::json::parse(file->data(), file->data() + file->size(), nullptr, false);
}

std::string digest(const std::byte* data, std::size_t bytes) {
  return sha256_hex({reinterpret_cast<const std::uint8_t*>(data), bytes});
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::unique_ptr<cpu::Interpreter> prepared(const ir::Model& model, int threads) {
  cpu::InterpreterOptions options;
  options.threads = threads;
  options.tflite_release = ops::TfliteRelease::kCurrent;
  auto created = cpu::Interpreter::create(std::make_shared<const ir::Model>(model), options);
  EXPECT_TRUE(created.ok()) << created.status().message();
  if (!created.ok()) return nullptr;
  const Status status = (*created)->prepare();
  EXPECT_TRUE(status.ok()) << status.message();
  return std::move(*created);
}

void fill(cpu::Interpreter& interpreter, const std::vector<std::byte>& data) {
  const std::span<std::byte> target = interpreter.input_bytes(0);
  ASSERT_EQ(target.size(), data.size());
  std::copy(data.begin(), data.end(), target.begin());
}

// Makes every op's first output a graph output, so that layers can be compared.
ir::Model with_all_outputs(ir::Model model) {
  ir::Subgraph& graph = model.subgraphs[0];
  graph.outputs.clear();
  for (const ir::Operator& op : graph.operators) graph.outputs.push_back(op.outputs[0]);
  return model;
}

class ShippedModel : public ::testing::TestWithParam<std::string> {
 protected:
  ShippedModel() : vectors_(read_vectors()) {
    auto loaded = tflite::load_model(kFolder + GetParam());
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    if (loaded.ok()) model_ = *loaded;
  }
  const nlohmann::json& recorded() const { return vectors_.at("models").at(GetParam()); }
  nlohmann::json vectors_;
  ir::Model model_;
};

TEST_P(ShippedModel, EveryLayerEqualsTheRecordedRuntime) {
  const bool is_float = recorded().at("dtype") == "float32";
  const ir::Model exposed = with_all_outputs(model_);
  for (const auto& row : recorded().at("generated")) {
    const auto interpreter = prepared(exposed, 2);
    ASSERT_NE(interpreter, nullptr);
    const ops::Tensor& input = interpreter->input(0);
    const auto data = lcg_fill(input.type, input.elements(), row.at("lcg_seed").get<std::uint32_t>());
    EXPECT_EQ(digest(data.data(), data.size()), row.at("input_sha256").get<std::string>());
    fill(*interpreter, data);
    ASSERT_TRUE(interpreter->invoke().ok());
    const auto& digests = row.at("op_output_sha256");
    ASSERT_EQ(static_cast<int>(digests.size()), interpreter->output_count());
    for (int i = 0; i < interpreter->output_count(); ++i) {
      const ops::Tensor& output = interpreter->output(i);
      const std::string want = digests[static_cast<std::size_t>(i)].get<std::string>();
      // The last op of the float model is SOFTMAX, whose exponential belongs to the C library.
      if (is_float && i + 1 == interpreter->output_count()) continue;
      EXPECT_EQ(
          exposed.subgraphs[0].operators[static_cast<std::size_t>(i)].type + " " + digest(output.data, output.bytes),
          want);
    }
  }
}

TEST_P(ShippedModel, OutputsEqualTheRecordedRuntime) {
  const bool is_float = recorded().at("dtype") == "float32";
  for (const auto& row : recorded().at("generated")) {
    const auto interpreter = prepared(model_, 1);
    ASSERT_NE(interpreter, nullptr);
    fill(*interpreter, lcg_fill(interpreter->input(0).type, interpreter->input(0).elements(),
                                row.at("lcg_seed").get<std::uint32_t>()));
    ASSERT_TRUE(interpreter->invoke().ok());
    const ops::Tensor& output = interpreter->output(0);
    const RecordedTensor want{output.type, output.shape, from_hex(row.at("output_hex").get<std::string>())};
    ASSERT_EQ(want.data.size(), output.bytes);
    const Status status = compare(want, output.type, output.shape, output.data, is_float ? 1e-5 : 0);
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedModel,
                         ::testing::Values("reef_creatures_int8.tflite", "reef_creatures_float.tflite"),
                         [](const auto& info) { return info.param.substr(0, info.param.find('.')); });

// Pictures are named after what they show.
TEST(ShippedPictures, TheProgramSeesWhatTheyShow) {
  int pictures = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder + "images")) {
    const std::string name = entry.path().filename().string();
    const std::string command = std::string(REEF_PROGRAM) + " run " + kFolder + "reef_creatures_int8.tflite --image '" +
                                entry.path().string() + "' --labels " + kFolder +
                                "reef_creatures_labels.txt --top 1 --json";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text;
    char chunk[4096];
    for (std::size_t n; (n = std::fread(chunk, 1, sizeof(chunk), pipe)) > 0;) text.append(chunk, n);
    EXPECT_EQ(::pclose(pipe), 0) << name;
    const auto json = nlohmann::json::parse(text, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << text;
    EXPECT_EQ(json.at("outputs").at(0).at("top").at(0).at("label").get<std::string>(), name.substr(0, name.find('_')));
    ++pictures;
  }
  EXPECT_GE(pictures, 8);
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// From an ONNX file and samples to Edge TPU code in one command, as a user does it, and what is said when that cannot
// be.
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "command_line.h"
#include "formats/numpy/npy.h"

namespace reef::testing {
namespace {

bool says(const Outcome& outcome, const std::string& words) { return outcome.text.find(words) != std::string::npos; }

class OnnxToChip : public CommandLine {
 protected:
  OnnxToChip() {
    // Pixels without meaning: the path is tested here, accuracy where there is data (bench/quantized_accuracy.py).
    std::vector<std::uint8_t> pixels(24 * 32 * 32 * 3);
    std::uint32_t state = 1;
    for (std::uint8_t& pixel : pixels)
      pixel = static_cast<std::uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
    const std::int64_t shape[] = {24, 32, 32, 3};
    EXPECT_TRUE(numpy::save_npy(path("pixels.npy"), ir::DataType::kUInt8, shape, pixels).ok());
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }

  const std::string model_ = std::string(REEF_SOURCE_DIR) + "/models/cifar_resnet8.onnx";
  const std::string data_ = " --data " + path("pixels.npy") + " --preprocess tf ";
};

TEST_F(OnnxToChip, OneCommandFromOnnxToVerifiedCode) {
  const Outcome outcome = reef("compile " + model_ + data_ + "-o " + folder_.string());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(says(outcome, "verified     on the virtual Edge TPU: 10 values in 1 output match bit for bit"))
      << outcome.text;
  EXPECT_TRUE(says(outcome, "only 20 samples to calibrate with")) << outcome.text;
  // All of it is on the chip, and the quantized model is there to compare with.
  EXPECT_FALSE(says(outcome, "will run on CPU")) << outcome.text;
  ASSERT_TRUE(exists("cifar_resnet8_int8.tflite") && exists("cifar_resnet8_int8_edgetpu.tflite"));
  const Outcome checked =
      reef("verify " + path("cifar_resnet8_int8.tflite") + " " + path("cifar_resnet8_int8_edgetpu.tflite"));
  EXPECT_EQ(checked.exit_code, 0) << checked.text;
}

TEST_F(OnnxToChip, ConvertWritesIntegersAndWhatTheyAreCalled) {
  const Outcome outcome = reef("convert " + model_ + data_ + "--io uint8 -o " + path("net.tflite") + " --map " +
                               path("map.json") + " --json 2>/dev/null");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.text;
  const Outcome inspected = reef("inspect " + path("net.tflite") + " --json");
  EXPECT_TRUE(says(inspected, "\"uint8\"")) << inspected.text;
  EXPECT_FALSE(says(inspected, "\"float32\"")) << inspected.text;
  const auto text = read_file(path("map.json"), 1 << 20);
  ASSERT_TRUE(text.ok());
  const auto map = nlohmann::json::parse(text->span().begin(), text->span().end());
  EXPECT_GT(map.at("tensors").size(), 15u);
  bool has_output = false;
  for (const auto& entry : map.at("tensors")) has_output = has_output || entry.at("onnx") == "output";
  EXPECT_TRUE(has_output) << map.dump(1);
}

TEST_F(OnnxToChip, AFloatModelWithoutSamplesIsRefusedWithTheWayOut) {
  const Outcome outcome = reef("compile " + model_ + " -o " + folder_.string());
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_TRUE(says(outcome, "cifar_resnet8.onnx is a float model") && says(outcome, "--data")) << outcome.text;
  EXPECT_FALSE(exists("cifar_resnet8_int8.tflite"));
}

TEST_F(OnnxToChip, QuantizedModelsPassUnchanged) {
  const std::string quantized = std::string(REEF_SOURCE_DIR) + "/models/reef_creatures_int8.tflite";
  const Outcome outcome = reef("compile " + quantized + data_ + "-o " + folder_.string());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.text;
  EXPECT_TRUE(exists("reef_creatures_int8_edgetpu.tflite"));
  EXPECT_FALSE(exists("reef_creatures_int8_int8.tflite"));
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// Shapes that are not in the collection: complete files of single convolutions, against what a generator makes of the
// same models that was written independently of this compiler, from the study of Google's files, and that reproduces
// all single convolutions known. tests/data/google_convolutions.txt has a hash of each of its files. It places partial
// sums before the header in wide memory whatever their sizes, which is right where a tile has 36 pixels or more: only
// such shapes are listed.
//
// REEF_WRITE_MODELS=FOLDER writes the models there instead, for the generator.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "formats/tflite/writer.h"
#include "generated_code.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

constexpr std::uint64_t kToken = 0x123456789abcdef;

// 3x3, as many outputs as inputs, a weight scale for each output, no bias.
ir::Model convolution(int height, int width, int channels) {
  QuantizedModel model({ir::DataType::kInt8, 0.047f, -3});
  const std::int32_t x = model.input({1, height, width, channels});
  const std::int32_t y = model.conv(x, channels, 3);
  std::vector<float> scales;
  for (int c = 0; c < channels; ++c) scales.push_back(0.01f + 0.0003f * static_cast<float>(c));
  ir::Quantization& weights = model.tensor(model.last_op().inputs[1]).quantization;
  weights.scale = scales;
  weights.zero_point.assign(static_cast<std::size_t>(channels), 0);
  const std::int32_t bias = model.ints(std::vector<std::int32_t>(static_cast<std::size_t>(channels)));
  model.tensor(bias).has_quantization = true;
  ir::Quantization& biases = model.tensor(bias).quantization;
  for (const float scale : scales) biases.scale.push_back(scale * 0.047f);
  biases.zero_point.assign(static_cast<std::size_t>(channels), 0);
  model.last_op().inputs[2] = bias;
  return model.finish({y});
}

std::uint64_t hash_of(std::span<const std::uint8_t> bytes) {  // FNV-1a
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

TEST(GoogleShapes, ConvolutionsAreThoseOfTheGenerator) {
  std::ifstream file(REEF_SOURCE_DIR "/tests/data/google_convolutions.txt");
  ASSERT_TRUE(file.is_open());
  const char* folder = std::getenv("REEF_WRITE_MODELS");
  int cases = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.front() == '#') continue;
    int height = 0, width = 0, channels = 0;
    std::string expected;
    std::istringstream(line) >> height >> width >> channels >> expected;
    SCOPED_TRACE(line);
    const ir::Model model = convolution(height, width, channels);
    ++cases;
    if (folder != nullptr) {
      const auto bytes = tflite::write_model(model);
      ASSERT_TRUE(bytes.ok());
      std::ofstream out(fmt::format("{}/{}x{}x{}.tflite", folder, height, width, channels), std::ios::binary);
      out.write(reinterpret_cast<const char*>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
      continue;
    }
    const WholeModel whole(model);
    const auto package = compiler::generate_code_with(whole.part(kToken), {.compiler_version = "cl/"});
    ASSERT_TRUE(package.ok()) << package.status().message();
    const auto ours = whole.file(*package);
    ASSERT_TRUE(ours.ok()) << ours.status().message();
    EXPECT_EQ(fmt::format("{:016x}", hash_of(*ours)), expected);
  }
  EXPECT_GE(cases, 20);
}

}  // namespace
}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// ONNX models of the collection: imported and simplified they give what ONNX Runtime gave (tests/onnx_outputs.json,
// recorded by tools/oracle/record_onnx_outputs.py), and convolutional networks have no TRANSPOSE left.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include <nlohmann/json.hpp>

#include "compiler/front_end.h"
#include "execute/cpu/interpreter.h"
#include "zoo.h"

namespace reef::testing {
namespace {

// Element i of the input as the recording tool made it, in ONNX's order.
float input_element(std::int64_t i) { return static_cast<float>(i * 7919 % 1009) / 504.5f - 1.0f; }

// Position in [n, c, h, w] of element i of [n, h, w, c].
std::int64_t channels_first_position(std::int64_t i, const ir::Shape& shape) {
  const std::int64_t channels = shape[3], pixels = std::int64_t{shape[1]} * shape[2];
  const std::int64_t c = i % channels, pixel = i / channels % pixels, n = i / channels / pixels;
  return (n * channels + c) * pixels + pixel;
}

void fill(cpu::Interpreter& interpreter, bool is_image) {
  const ops::Tensor& input = interpreter.input(0);
  const std::span<std::byte> bytes = interpreter.input_bytes(0);
  for (std::int64_t i = 0; i < input.elements(); ++i) {
    if (input.type == ir::DataType::kFloat32) {
      const float value = input_element(is_image ? channels_first_position(i, input.shape) : i);
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    } else {
      const std::int64_t value = i * 37 % 199;
      std::memcpy(bytes.data() + 8 * i, &value, 8);
    }
  }
}

// The largest difference to the recording, relative to its largest value.
double difference(const ops::Tensor& output, const nlohmann::json& recorded) {
  const std::vector<std::int64_t> shape = recorded["shape"];
  const bool is_image =
      shape.size() == 4 && std::vector<std::int64_t>(output.shape.begin(), output.shape.end()) != shape;
  std::vector<double> values(static_cast<std::size_t>(output.elements()));
  for (std::int64_t i = 0; i < output.elements(); ++i) {
    const std::int64_t at = is_image ? channels_first_position(i, output.shape) : i;
    values[static_cast<std::size_t>(at)] = output.values<float>()[static_cast<std::size_t>(i)];
  }
  double largest = 1e-12, worst = 0;
  const std::size_t step = recorded["step"];
  for (std::size_t i = 0; i < recorded["values"].size(); ++i) {
    const double wanted = recorded["values"][i];
    largest = std::max(largest, std::fabs(wanted));
    worst = std::max(worst, std::fabs(wanted - values.at(i * step)));
  }
  return worst / largest;
}

TEST(OnnxZoo, GivesWhatOnnxRuntimeGives) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  const nlohmann::json recorded = nlohmann::json::parse(std::ifstream(REEF_SOURCE_DIR "/tests/onnx_outputs.json"));
  for (const auto& [name, outputs] : recorded.items()) {
    SCOPED_TRACE(name);
    const std::string path = zoo + "/onnx/" + name;
    if (!std::filesystem::exists(path)) continue;
    auto loaded = compiler::load_any_model(path);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    const auto model = std::make_shared<const ir::Model>(std::move(loaded->model));
    auto interpreter = cpu::Interpreter::create(model);
    ASSERT_TRUE(interpreter.ok()) << interpreter.status().message();
    ASSERT_TRUE((*interpreter)->prepare().ok());
    // Recurrent models take a picture as rows, [1, 1, 28, 28], in its own order.
    const ir::Shape shape = (*interpreter)->input(0).shape;
    fill(**interpreter, shape.rank() == 4 && shape[3] <= 3);
    ASSERT_TRUE((*interpreter)->invoke().ok());
    EXPECT_LT(difference((*interpreter)->output(0), outputs.begin().value()), 1e-4);
  }
}

TEST(OnnxZoo, ConvolutionalNetworksHaveNoTransposes) {
  REEF_SKIP_WITHOUT_ZOO(zoo);
  for (const char* name : {"cifar_effnet_silu", "cifar_embedding", "cifar_embedding_l2", "cifar_mobilenetv2",
                           "cifar_resnet8", "cifar_resnet8_dynamo", "cifar_unet_denoise", "fashion_cnn",
                           "fashion_cnn_dynamo", "shapes_yolo", "shapes_yolo_dynamo"}) {
    SCOPED_TRACE(name);
    const auto loaded = compiler::load_any_model(zoo + "/onnx/" + name + ".onnx");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    for (const ir::Operator& op : loaded->model.subgraphs[0].operators) EXPECT_NE(op.type, "TRANSPOSE");
    EXPECT_EQ(loaded->format, compiler::ModelFormat::kOnnx);
    EXPECT_FALSE(loaded->origins.empty());
  }
}

}  // namespace
}  // namespace reef::testing

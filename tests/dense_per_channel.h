// SPDX-License-Identifier: Apache-2.0
// x + DEQUANTIZE(FULLY_CONNECTED(constants)), where the dense layer has int8 weights with a scale per channel:
// TFLite 2.9 takes such weights for zeros, current releases compute with each channel's scale. LiteRT 2.3 gives 6.35
// and -1.6 at x = 0; a constant that was folded by 2.9's rules gives 0 and 0.
#pragma once

#include <array>
#include <cstring>
#include <vector>

#include "formats/tflite/operator_codes.h"
#include "ir/model.h"

namespace reef::testing {

inline const std::vector<float> kDensePerChannelOutputs = {127 * 0.05f, -32 * 0.05f};

inline ir::Model dense_per_channel() {
  ir::Model model;
  model.version = 3;
  model.buffers.resize(1);
  ir::Subgraph& graph = model.subgraphs.emplace_back();
  const auto add = [&](const char* name, ir::DataType type, ir::Shape shape, std::vector<float> scales,
                       std::vector<std::uint8_t> data = {}) {
    ir::Tensor& tensor = graph.tensors.emplace_back();
    tensor.name = name;
    tensor.type = type;
    tensor.shape = std::move(shape);
    tensor.has_quantization = !scales.empty();
    tensor.quantization.zero_point.assign(scales.size(), 0);
    tensor.quantization.scale = std::move(scales);
    if (data.empty()) return;
    tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
    model.buffers.emplace_back().data = Bytes(std::move(data));
  };
  const auto codes = [](std::initializer_list<int> values) {
    std::vector<std::uint8_t> bytes;
    for (const int value : values) bytes.push_back(static_cast<std::uint8_t>(value));
    return bytes;
  };
  const std::array<std::int32_t, 2> bias = {100, 200};
  std::vector<std::uint8_t> bias_bytes(sizeof bias);
  std::memcpy(bias_bytes.data(), bias.data(), sizeof bias);
  add("x", ir::DataType::kFloat32, {1, 2}, {});
  add("c", ir::DataType::kInt8, {1, 4}, {0.1f}, codes({10, 20, 30, 40}));
  add("w", ir::DataType::kInt8, {2, 4}, {0.01f, 0.02f}, codes({50, 60, 70, 80, 10, -20, 30, -40}));
  add("b", ir::DataType::kInt32, {2}, {0.001f, 0.002f}, bias_bytes);
  add("fc", ir::DataType::kInt8, {1, 2}, {0.05f});
  add("deq", ir::DataType::kFloat32, {1, 2}, {});
  add("z", ir::DataType::kFloat32, {1, 2}, {});
  const auto compute = [&](const char* type, const char* options, std::vector<std::int32_t> inputs, std::int32_t output,
                           std::int32_t version) {
    ir::Operator& op = graph.operators.emplace_back();
    op.type = type;
    op.builtin_code = tflite::builtin_code(type);
    op.version = version;
    op.options_type = options;
    op.inputs = std::move(inputs);
    op.outputs = {output};
  };
  compute("FULLY_CONNECTED", "FullyConnectedOptions", {1, 2, 3}, 4, 4);
  compute("DEQUANTIZE", "DequantizeOptions", {4}, 5, 2);
  compute("ADD", "AddOptions", {0, 5}, 6, 1);
  graph.inputs = {0};
  graph.outputs = {6};
  return model;
}

}  // namespace reef::testing

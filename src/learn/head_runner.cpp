// SPDX-License-Identifier: Apache-2.0
#include "learn/head_runner.h"

#include <cstring>
#include <memory>

#include "execute/cpu/evaluate.h"
#include "learn/head_builder.h"

namespace reef::learn {
namespace {

Affine affine_of(const ir::Tensor& tensor) {
  const ir::Quantization& q = tensor.quantization;
  return {q.scale.empty() ? 1.0f : q.scale[0], q.zero_point.empty() ? 0 : static_cast<std::int32_t>(q.zero_point[0])};
}

}  // namespace

Result<std::vector<float>> real_values(const ir::Tensor& tensor, std::span<const std::byte> bytes) {
  std::vector<float> values;
  if (tensor.type == ir::DataType::kFloat32) {
    values.resize(bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
  if (!ir::is_integer_8(tensor.type)) {
    return unsupported("'{}' is {}; float32, int8 or uint8 is needed", tensor.name, ir::type_name(tensor.type));
  }
  const Affine affine = affine_of(tensor);
  for (const std::byte byte : bytes) {
    const auto code = static_cast<std::uint8_t>(byte);
    const int stored = tensor.type == ir::DataType::kInt8 ? static_cast<std::int8_t>(code) : code;
    values.push_back(affine.scale * static_cast<float>(stored - affine.zero_point));
  }
  return values;
}

Status store_values(const ir::Tensor& tensor, std::span<const float> values, std::span<std::byte> bytes) {
  if (tensor.type == ir::DataType::kFloat32) {
    REEF_REQUIRE(values.size_bytes() == bytes.size(), "'{}' takes {} bytes, {} numbers are given", tensor.name,
                 bytes.size(), values.size());
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return ok_status();
  }
  REEF_REQUIRE(ir::is_integer_8(tensor.type) && values.size() == bytes.size(),
               "'{}' is {} of {} bytes; {} numbers do not fit", tensor.name, ir::type_name(tensor.type), bytes.size(),
               values.size());
  const Affine affine = affine_of(tensor);
  for (std::size_t i = 0; i < values.size(); ++i) {
    bytes[i] = static_cast<std::byte>(quantized(values[i], affine, tensor.type));
  }
  return ok_status();
}

Result<std::vector<std::vector<float>>> run_head(const ir::Model& head, const Embeddings& embeddings) {
  const ir::Subgraph& graph = head.subgraphs[0];
  const ir::Tensor& input = graph.tensors[at(graph.inputs[0])];
  const ir::Tensor& output = graph.tensors[at(graph.outputs[0])];
  REEF_ASSIGN_OR_RETURN(const auto interpreter, cpu::prepared(std::make_shared<const ir::Model>(head)));
  std::vector<std::vector<float>> scores;
  for (std::size_t i = 0; i < embeddings.size(); ++i) {
    REEF_RETURN_IF_ERROR(store_values(input, embeddings.row(i), interpreter->input_bytes(0)));
    REEF_RETURN_IF_ERROR(interpreter->invoke());
    const ops::Tensor& result = interpreter->output(0);
    REEF_ASSIGN_OR_RETURN(std::vector<float> row, real_values(output, {result.data, result.bytes}));
    scores.push_back(std::move(row));
  }
  return scores;
}

}  // namespace reef::learn

// SPDX-License-Identifier: Apache-2.0
#include "ir/constants.h"

namespace reef::ir {

bool is_float_constant(const Model& model, const Tensor& tensor) {
  return tensor.type == DataType::kFloat32 && !tensor.is_variable && !constant_data(model, tensor).empty();
}

std::vector<float> float_values(const Model& model, const Tensor& tensor) {
  const Bytes& data = constant_data(model, tensor);
  std::vector<float> values(data.size() / sizeof(float));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(float));
  return values;
}

std::optional<std::vector<std::int64_t>> constant_integers(const Model& model, const Tensor& tensor) {
  if (!is_constant(model, tensor) || tensor.external_buffer != 0) return std::nullopt;
  if (tensor.type == DataType::kInt64) return int_values<std::int64_t>(model, tensor);
  if (tensor.type != DataType::kInt32) return std::nullopt;
  const std::vector<std::int32_t> values = int_values<std::int32_t>(model, tensor);
  return std::vector<std::int64_t>(values.begin(), values.end());
}

void set_constant(Model& model, Tensor& tensor, std::span<const std::uint8_t> bytes) {
  Buffer buffer;
  buffer.data = Bytes(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
  buffer.is_empty_constant = bytes.empty();
  tensor.buffer = static_cast<std::int32_t>(model.buffers.size());
  tensor.external_buffer = 0;
  model.buffers.push_back(std::move(buffer));
}

}  // namespace reef::ir

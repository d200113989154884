// SPDX-License-Identifier: Apache-2.0
// Questions about a model's constants, and new ones for its tensors.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ir/model.h"
#include "ir/uses.h"

namespace reef::quantize {

// Takes out the operators of the first subgraph whose results nobody reads. Tensors stay, with their numbers.
void drop_unread(ir::Model& model);

// The file holds its float32 values.
bool is_float_constant(const ir::Model& model, const ir::Tensor& tensor);
// Such a one that a single operator reads and nobody outside sees: it may be changed with that operator.
bool is_own_constant(const ir::Model& model, const ir::Uses& uses, std::int32_t tensor);
// Copies: the bytes in a file need not be aligned. Precondition: is_float_constant.
std::vector<float> float_values(const ir::Model& model, const ir::Tensor& tensor);
// Constant integers, little-endian as files have them; none where the file does not hold them.
template <typename T>
std::vector<T> int_values(const ir::Model& model, const ir::Tensor& tensor) {
  const auto& data = ir::constant_data(model, tensor);
  std::vector<T> result(data.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), data.data(), result.size() * sizeof(T));
  return result;
}
// Gives the tensor a new buffer with these bytes.
void set_constant(ir::Model& model, ir::Tensor& tensor, std::span<const std::uint8_t> bytes);
template <typename T>
void set_constant(ir::Model& model, ir::Tensor& tensor, const std::vector<T>& values) {
  set_constant(
      model, tensor,
      std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)));
}

}  // namespace reef::quantize

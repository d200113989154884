// SPDX-License-Identifier: Apache-2.0
// Values of a model's constants, and new ones for its tensors.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "ir/model.h"

namespace reef::ir {

// The file holds its float32 values.
bool is_float_constant(const Model& model, const Tensor& tensor);
// Copies: the bytes in a file need not be aligned. Precondition: is_float_constant.
std::vector<float> float_values(const Model& model, const Tensor& tensor);
// Constant integers, little-endian as files have them; none where the file does not hold them.
template <typename T>
std::vector<T> int_values(const Model& model, const Tensor& tensor) {
  const auto& data = constant_data(model, tensor);
  std::vector<T> result(data.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), data.data(), result.size() * sizeof(T));
  return result;
}
// The values of a constant of type int32 or int64; nullopt: it is computed, or of another type.
std::optional<std::vector<std::int64_t>> constant_integers(const Model& model, const Tensor& tensor);
// Gives the tensor a new buffer with these bytes.
void set_constant(Model& model, Tensor& tensor, std::span<const std::uint8_t> bytes);
template <typename T>
void set_constant(Model& model, Tensor& tensor, const std::vector<T>& values) {
  set_constant(
      model, tensor,
      std::span<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)));
}

}  // namespace reef::ir

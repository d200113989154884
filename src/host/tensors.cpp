// SPDX-License-Identifier: Apache-2.0
#include "host/tensors.h"

#include <algorithm>
#include <limits>

namespace reef::host {
namespace {

// For inputs, outputs and scratch memory of a package: far more than any model takes.
constexpr std::int64_t kMaxHostBytes = std::int64_t{1} << 29;

bool is_signed(darwinn::DataType type) {
  return type == darwinn::DataType::kInt8 || type == darwinn::DataType::kInt16 || type == darwinn::DataType::kInt32;
}

}  // namespace

std::size_t element_bytes(darwinn::DataType type) {
  switch (type) {
    case darwinn::DataType::kUint8:
    case darwinn::DataType::kInt8:
      return 1;
    case darwinn::DataType::kInt32:
    case darwinn::DataType::kFloat32:
      return 4;
    default:
      return 2;
  }
}

std::int64_t tensor_bytes(const darwinn::Layer& layer) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t area = std::int64_t{layer.y_dim} * layer.x_dim;
  const std::int64_t depth = layer.z_dim * static_cast<std::int64_t>(element_bytes(layer.data_type));
  return depth != 0 && area > kMost / depth ? kMost : area * depth;
}

void flip_signs(std::span<std::uint8_t> data, darwinn::DataType type) {
  if (!is_signed(type)) return;
  const std::size_t size = element_bytes(type);
  for (std::size_t i = size - 1; i < data.size(); i += size) data[i] ^= 0x80;
}

Status fill_input(const darwinn::Layer& layer, std::span<const std::uint8_t> tensor, std::vector<std::uint8_t>& data) {
  REEF_REQUIRE(
      static_cast<std::int64_t>(tensor.size()) == tensor_bytes(layer) && tensor_bytes(layer) <= layer.size_bytes,
      "input '{}' takes {} bytes, {} were given", layer.name, tensor_bytes(layer), tensor.size());
  data.clear();
  data.reserve(static_cast<std::size_t>(layer.size_bytes));
  data.assign(tensor.begin(), tensor.end());
  flip_signs(data, layer.data_type);
  data.resize(static_cast<std::size_t>(layer.size_bytes));
  return ok_status();
}

Result<std::vector<std::uint8_t>> padded_input(const darwinn::Layer& layer, std::span<const std::uint8_t> tensor) {
  std::vector<std::uint8_t> data;
  REEF_RETURN_IF_ERROR(fill_input(layer, tensor, data));
  return data;
}

bool is_taken_as_it_is(const darwinn::Layer& layer) {
  return !is_signed(layer.data_type) && tensor_bytes(layer) == layer.size_bytes;
}

Result<std::vector<std::uint8_t>> gathered(const darwinn::Layer& layer, std::span<const std::uint8_t> buffer) {
  const auto size = static_cast<std::int64_t>(element_bytes(layer.data_type));
  std::vector<std::uint8_t> tensor(static_cast<std::size_t>(tensor_bytes(layer)));
  if (tensor.empty()) return tensor;
  const auto* info = std::get_if<darwinn::OutputInfo>(&layer.info);
  if (info == nullptr || !info->layout) {
    REEF_REQUIRE(tensor.size() <= buffer.size(), "output '{}' is larger than what is sent for it", layer.name);
    std::copy_n(buffer.begin(), tensor.size(), tensor.begin());
    return tensor;
  }
  auto to = tensor.begin();
  for (std::int32_t y = 0; y < layer.y_dim; ++y) {
    for (std::int32_t x = 0; x < layer.x_dim; ++x) {
      const auto first = info->layout->index_of(static_cast<std::size_t>(y), static_cast<std::size_t>(x));
      const std::int64_t bytes = layer.z_dim * size;
      const auto elements = static_cast<std::int64_t>(buffer.size()) / size;
      REEF_REQUIRE(first && *first >= 0 && *first <= elements - layer.z_dim,
                   "the layout of output '{}' puts element ({}, {}) outside of its buffer", layer.name, y, x);
      std::copy_n(buffer.begin() + *first * size, bytes, to);
      to += bytes;
    }
  }
  return tensor;
}

Status check_sizes(const darwinn::Executable& executable) {
  std::int64_t bytes = executable.scratch_size_bytes;
  REEF_REQUIRE(bytes >= 0, "the program wants {} bytes of scratch memory", bytes);
  for (const auto* layers : {&executable.input_layers, &executable.output_layers}) {
    for (const darwinn::Layer& layer : *layers) {
      const bool is_sound = layer.y_dim >= 0 && layer.x_dim >= 0 && layer.z_dim >= 0 && layer.size_bytes >= 0;
      REEF_REQUIRE(is_sound && tensor_bytes(layer) <= kMaxHostBytes, "layer '{}' of {} x {} x {} elements in {} bytes",
                   layer.name, layer.y_dim, layer.x_dim, layer.z_dim, layer.size_bytes);
      bytes += layer.size_bytes + tensor_bytes(layer);
    }
  }
  if (bytes <= kMaxHostBytes) return ok_status();
  return make_error(StatusCode::kResourceExhausted,
                    "the package's tensors and scratch memory take {} bytes, at most {}", bytes, kMaxHostBytes);
}

}  // namespace reef::host

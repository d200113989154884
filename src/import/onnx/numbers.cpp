// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/numbers.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace reef::import {
namespace {

template <typename T>
void append_value(std::vector<std::uint8_t>& bytes, T value) {
  bytes.resize(bytes.size() + sizeof(T));
  std::memcpy(bytes.data() + bytes.size() - sizeof(T), &value, sizeof(T));
}

template <typename T>
T saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) return std::numeric_limits<T>::lowest();
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

template <typename Out, typename In>
std::vector<Out> converted(const Bytes& data) {
  std::vector<Out> result(data.size() / sizeof(In));
  for (std::size_t i = 0; i < result.size(); ++i) {
    In element;
    std::memcpy(&element, data.data() + i * sizeof(In), sizeof(In));
    result[i] = static_cast<Out>(element);
  }
  return result;
}

template <typename Out>
std::optional<std::vector<Out>> numbers(ir::DataType type, const Bytes& data) {
  switch (type) {
    case ir::DataType::kFloat32:
      return converted<Out, float>(data);
    case ir::DataType::kInt32:
      return converted<Out, std::int32_t>(data);
    case ir::DataType::kInt64:
      return converted<Out, std::int64_t>(data);
    case ir::DataType::kInt16:
      return converted<Out, std::int16_t>(data);
    case ir::DataType::kUInt16:
      return converted<Out, std::uint16_t>(data);
    case ir::DataType::kUInt32:
      return converted<Out, std::uint32_t>(data);
    case ir::DataType::kInt8:
      return converted<Out, std::int8_t>(data);
    case ir::DataType::kUInt8:
    case ir::DataType::kBool:
      return converted<Out, std::uint8_t>(data);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<std::uint8_t> number_bytes(ir::DataType type, double value) {
  std::vector<std::uint8_t> bytes;
  switch (type) {
    case ir::DataType::kFloat32:
      append_value(bytes, static_cast<float>(value));
      break;
    case ir::DataType::kInt32:
      append_value(bytes, saturated<std::int32_t>(value));
      break;
    case ir::DataType::kInt64:
      append_value(bytes, saturated<std::int64_t>(value));
      break;
    case ir::DataType::kInt16:
      append_value(bytes, saturated<std::int16_t>(value));
      break;
    case ir::DataType::kUInt16:
      append_value(bytes, saturated<std::uint16_t>(value));
      break;
    case ir::DataType::kUInt32:
      append_value(bytes, saturated<std::uint32_t>(value));
      break;
    case ir::DataType::kInt8:
      append_value(bytes, saturated<std::int8_t>(value));
      break;
    case ir::DataType::kUInt8:
      append_value(bytes, saturated<std::uint8_t>(value));
      break;
    case ir::DataType::kBool:
      append_value(bytes, static_cast<std::uint8_t>(value != 0));
      break;
    default:
      break;
  }
  return bytes;
}

std::vector<std::uint8_t> integer_bytes(std::span<const std::int64_t> values, ir::DataType type) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(values.size() * 8);
  for (const std::int64_t value : values) {
    if (type == ir::DataType::kInt64) {
      append_value(bytes, value);
    } else {
      append_value(bytes, saturated<std::int32_t>(static_cast<double>(value)));
    }
  }
  return bytes;
}

std::optional<std::vector<std::int64_t>> as_integers(ir::DataType type, const Bytes& data) {
  if (type != ir::DataType::kFloat32) return numbers<std::int64_t>(type, data);
  std::vector<std::int64_t> result;
  for (const float each : converted<float, float>(data)) {
    if (!(std::fabs(each) < 1e15f) || each != std::floor(each)) return std::nullopt;
    result.push_back(static_cast<std::int64_t>(each));
  }
  return result;
}

std::optional<std::vector<float>> as_floats(ir::DataType type, const Bytes& data) { return numbers<float>(type, data); }

}  // namespace reef::import

// SPDX-License-Identifier: Apache-2.0
#include "data/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "numeric/half.h"

namespace reef::data {
namespace {

using ir::DataType;

template <typename T, typename Convert>
Status store_each(std::span<const double> values, std::span<std::byte> target, const Convert& convert) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T stored = convert(values[i]);
    std::memcpy(target.data() + i * sizeof(T), &stored, sizeof(T));
  }
  return ok_status();
}

// Pixels scaled to [-1, 1] lie halfway between two codes, all 256 of them, and a scale rounded to float would decide
// for each which way it goes: some would fall together. What is so near to halfway goes up, so that they stay 256.
constexpr double kTie = 1e-4;

// With saturation; not a number becomes the zero point.
template <typename T>
Status store_quantized(std::span<const double> values, const ir::Quantization& q, std::span<std::byte> target) {
  const double scale = q.scale[0];
  const double zero_point = q.zero_point.empty() ? 0.0 : static_cast<double>(q.zero_point[0]);
  return store_each<T>(values, target, [&](double value) {
    const double code = std::isnan(value) ? zero_point : std::floor(value / scale + 0.5 + kTie) + zero_point;
    return static_cast<T>(std::clamp(code, static_cast<double>(std::numeric_limits<T>::lowest()),
                                     static_cast<double>(std::numeric_limits<T>::max())));
  });
}

template <typename T>
Status store_whole(std::span<const double> values, const InputSpec& input, std::span<std::byte> target) {
  // 2^63 itself is beyond int64, and is what its maximum becomes as a double.
  const double low = static_cast<double>(std::numeric_limits<T>::lowest());
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    REEF_REQUIRE(value >= low && value < beyond && value == std::floor(value),
                 "value {} (number {}) does not fit input '{}', which is {}", value, i, input.name,
                 ir::type_name(input.type));
    const T stored = static_cast<T>(value);
    std::memcpy(target.data() + i * sizeof(T), &stored, sizeof(T));
  }
  return ok_status();
}

template <typename T>
Status store_integers(std::span<const double> values, const InputSpec& input, std::span<std::byte> target) {
  REEF_REQUIRE(input.quantization.scale.size() <= 1, "input '{}' has a scale for each channel, which is not done",
               input.name);
  return input.quantization.is_quantized() ? store_quantized<T>(values, input.quantization, target)
                                           : store_whole<T>(values, input, target);
}

template <typename T>
std::vector<double> as_doubles(const numpy::Array& array, std::int64_t first, std::int64_t count) {
  std::vector<double> result(static_cast<std::size_t>(count));
  const std::uint8_t* from = array.data.data() + static_cast<std::size_t>(first) * sizeof(T);
  for (std::size_t i = 0; i < result.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    result[i] = static_cast<double>(value);
  }
  return result;
}

}  // namespace

Status store_reals(std::span<const double> values, const InputSpec& input, std::span<std::byte> target) {
  const auto width = static_cast<std::size_t>(ir::bits_per_element(input.type) / 8);
  REEF_REQUIRE(target.size() == values.size() * width, "{} values do not fill input '{}' of {} bytes", values.size(),
               input.name, target.size());
  switch (input.type) {
    case DataType::kFloat32:
      return store_each<float>(values, target, [](double value) { return static_cast<float>(value); });
    case DataType::kFloat64:
      return store_each<double>(values, target, [](double value) { return value; });
    case DataType::kFloat16:
      return store_each<std::uint16_t>(values, target,
                                       [](double value) { return numeric::float_to_half(static_cast<float>(value)); });
    case DataType::kBFloat16:
      return store_each<std::uint16_t>(
          values, target, [](double value) { return numeric::float_to_bfloat16(static_cast<float>(value)); });
    case DataType::kBool:
      return store_each<std::uint8_t>(values, target, [](double value) { return value != 0 ? 1 : 0; });
    case DataType::kInt8:
      return store_integers<std::int8_t>(values, input, target);
    case DataType::kUInt8:
      return store_integers<std::uint8_t>(values, input, target);
    case DataType::kInt16:
      return store_integers<std::int16_t>(values, input, target);
    case DataType::kUInt16:
      return store_integers<std::uint16_t>(values, input, target);
    case DataType::kInt32:
      return store_whole<std::int32_t>(values, input, target);
    case DataType::kUInt32:
      return store_whole<std::uint32_t>(values, input, target);
    case DataType::kInt64:
      return store_whole<std::int64_t>(values, input, target);
    default:
      return unsupported("input '{}' is {}, which data cannot be stored in", input.name, ir::type_name(input.type));
  }
}

Result<std::vector<double>> array_values(const numpy::Array& array, std::int64_t first, std::int64_t count) {
  REEF_REQUIRE(first >= 0 && count >= 0 && first <= array.elements() && count <= array.elements() - first,
               "elements {} to {} are not in an array of {}", first, first + count, array.elements());
  switch (array.type) {
    case DataType::kBool:
    case DataType::kUInt8:
      return as_doubles<std::uint8_t>(array, first, count);
    case DataType::kInt8:
      return as_doubles<std::int8_t>(array, first, count);
    case DataType::kInt16:
      return as_doubles<std::int16_t>(array, first, count);
    case DataType::kUInt16:
      return as_doubles<std::uint16_t>(array, first, count);
    case DataType::kInt32:
      return as_doubles<std::int32_t>(array, first, count);
    case DataType::kUInt32:
      return as_doubles<std::uint32_t>(array, first, count);
    case DataType::kInt64:
      return as_doubles<std::int64_t>(array, first, count);
    case DataType::kUInt64:
      return as_doubles<std::uint64_t>(array, first, count);
    case DataType::kFloat32:
      return as_doubles<float>(array, first, count);
    case DataType::kFloat64:
      return as_doubles<double>(array, first, count);
    case DataType::kFloat16: {
      std::vector<double> result = as_doubles<std::uint16_t>(array, first, count);
      for (double& value : result) value = numeric::half_to_float(static_cast<std::uint16_t>(value));
      return result;
    }
    default:
      return unsupported("an array of {} holds no real numbers", ir::type_name(array.type));
  }
}

}  // namespace reef::data

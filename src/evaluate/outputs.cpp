// SPDX-License-Identifier: Apache-2.0
#include "evaluate/outputs.h"

#include "numeric/half.h"

namespace reef::evaluate {
namespace {

using ir::DataType;

template <typename T>
std::vector<double> as_numbers(const ops::Tensor& tensor, std::size_t first, std::size_t count) {
  const auto values = tensor.values<T>().subspan(first, count);
  return {values.begin(), values.end()};
}

template <typename T>
std::vector<double> dequantized(const ops::Tensor& tensor, std::size_t first, std::size_t count) {
  std::vector<double> reals = as_numbers<T>(tensor, first, count);
  const ir::Quantization& q = *tensor.quantization;
  if (q.scale.empty()) return reals;
  const auto zero_of = [&](std::size_t channel) {
    return q.zero_point.empty() ? 0.0 : static_cast<double>(q.zero_point[q.zero_point.size() == 1 ? 0 : channel]);
  };
  if (q.scale.size() == 1) {
    for (double& value : reals) value = (value - zero_of(0)) * static_cast<double>(q.scale[0]);
    return reals;
  }
  const auto inner = static_cast<std::size_t>(tensor.shape.product(q.dimension + 1, tensor.shape.rank()));
  for (std::size_t i = 0; i < reals.size(); ++i) {
    const std::size_t channel = (first + i) / inner % q.scale.size();
    reals[i] = (reals[i] - zero_of(channel)) * static_cast<double>(q.scale[channel]);
  }
  return reals;
}

}  // namespace

Result<std::vector<double>> real_values(const ops::Tensor& tensor) {
  const auto bytes = static_cast<std::size_t>(ir::bits_per_element(tensor.type) / 8);
  return real_values(tensor, 0, bytes == 0 ? 0 : tensor.bytes / bytes);
}

Result<std::vector<double>> real_values(const ops::Tensor& tensor, std::size_t first, std::size_t count) {
  switch (tensor.type) {
    case DataType::kFloat32:
      return as_numbers<float>(tensor, first, count);
    case DataType::kFloat64:
      return as_numbers<double>(tensor, first, count);
    case DataType::kFloat16: {
      std::vector<double> reals;
      for (const std::uint16_t half : tensor.values<std::uint16_t>().subspan(first, count)) {
        reals.push_back(numeric::half_to_float(half));
      }
      return reals;
    }
    case DataType::kUInt8:
    case DataType::kBool:
      return dequantized<std::uint8_t>(tensor, first, count);
    case DataType::kInt8:
      return dequantized<std::int8_t>(tensor, first, count);
    case DataType::kInt16:
      return dequantized<std::int16_t>(tensor, first, count);
    case DataType::kUInt16:
      return dequantized<std::uint16_t>(tensor, first, count);
    case DataType::kInt32:
      return dequantized<std::int32_t>(tensor, first, count);
    case DataType::kInt64:
      return dequantized<std::int64_t>(tensor, first, count);
    default:
      return unsupported("'{}' is {}; its values are not read as numbers", tensor.name, ir::type_name(tensor.type));
  }
}

Result<TensorValues> tensor_values(const ops::Tensor& tensor) {
  REEF_ASSIGN_OR_RETURN(std::vector<double> values, real_values(tensor));
  return TensorValues{std::string(tensor.name), tensor.shape, std::move(values)};
}

}  // namespace reef::evaluate

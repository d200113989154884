// SPDX-License-Identifier: Apache-2.0
#include "tensor_io.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "base/file.h"
#include "formats/image/image.h"
#include "numeric/half.h"

namespace reef::app {
namespace {

using ir::DataType;

constexpr std::uint64_t kMaxTensorFileBytes = std::uint64_t{1} << 33;
constexpr std::size_t kMaxLabels = 1 << 20;

struct PictureLayout {
  int height = 0, width = 0, channels = 0;
  bool channels_first = false;
};

Result<PictureLayout> picture_layout(const ops::Tensor& tensor) {
  const ir::Shape& s = tensor.shape;
  const auto is_channels = [](std::int32_t n) { return n == 1 || n == 3 || n == 4; };
  if (s.rank() == 4 && s[0] == 1 && is_channels(s[3])) return PictureLayout{s[1], s[2], s[3], false};
  if (s.rank() == 4 && s[0] == 1 && is_channels(s[1])) return PictureLayout{s[2], s[3], s[1], true};
  if (s.rank() == 3 && is_channels(s[2])) return PictureLayout{s[0], s[1], s[2], false};
  if (s.rank() == 3 && s[0] == 1) return PictureLayout{s[1], s[2], 1, false};
  return invalid_input("input '{}' has shape {}; a picture needs [1, height, width, channels] with 1, 3 or 4 channels",
                       tensor.name, s.to_string());
}

template <typename T>
void store(std::span<std::byte> target, std::size_t index, T value) {
  std::memcpy(target.data() + index * sizeof(T), &value, sizeof(T));
}

// Quantizes with saturation: round(real / scale) + zero_point.
template <typename T>
T quantize(double real, const ir::Quantization& q) {
  const double scale = q.scale.empty() ? 1.0 : q.scale[0];
  const double zero_point = q.zero_point.empty() ? 0.0 : static_cast<double>(q.zero_point[0]);
  const double value = std::round(real / scale) + zero_point;
  if (std::isnan(value)) return 0;
  return static_cast<T>(std::clamp(value, static_cast<double>(std::numeric_limits<T>::lowest()),
                                   static_cast<double>(std::numeric_limits<T>::max())));
}

Status store_sample(const ops::Tensor& tensor, const PixelScaling& scaling, std::span<std::byte> target, std::size_t i,
                    std::uint8_t sample) {
  const double real = scaling.is_set ? (sample - scaling.mean) / scaling.std : sample / 255.0;
  switch (tensor.type) {
    case DataType::kUInt8:
      store(target, i, scaling.is_set ? quantize<std::uint8_t>(real, *tensor.quantization) : sample);
      return ok_status();
    case DataType::kInt8:
      store(
          target, i,
          scaling.is_set ? quantize<std::int8_t>(real, *tensor.quantization) : static_cast<std::int8_t>(sample - 128));
      return ok_status();
    case DataType::kInt16:
      store(target, i, quantize<std::int16_t>(real, *tensor.quantization));
      return ok_status();
    case DataType::kFloat32:
      store(target, i, static_cast<float>(real));
      return ok_status();
    case DataType::kFloat16:
      store(target, i, numeric::float_to_half(static_cast<float>(real)));
      return ok_status();
    default:
      return unsupported("a picture cannot be stored in '{}', which is {}", tensor.name, ir::type_name(tensor.type));
  }
}

template <typename T>
std::vector<double> dequantize(const ops::Tensor& tensor) {
  const ir::Quantization& q = *tensor.quantization;
  const bool per_tensor = q.scale.size() == 1;
  const double scale = per_tensor ? q.scale[0] : 1.0;
  const double zero_point = per_tensor && !q.zero_point.empty() ? static_cast<double>(q.zero_point[0]) : 0.0;
  std::vector<double> reals;
  for (const T value : tensor.values<T>()) reals.push_back((static_cast<double>(value) - zero_point) * scale);
  return reals;
}

}  // namespace

Status fill_from_file(const std::string& path, const ops::Tensor& tensor, std::span<std::byte> target) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, kMaxTensorFileBytes));
  REEF_REQUIRE(file.size() == target.size(), "'{}' has {} bytes, but input '{}' ({} {}) takes {}", path, file.size(),
               tensor.name, ir::type_name(tensor.type), tensor.shape.to_string(), target.size());
  std::memcpy(target.data(), file.data(), file.size());
  return ok_status();
}

Status fill_from_image(const std::string& path, const PixelScaling& scaling, const ops::Tensor& tensor,
                       std::span<std::byte> target) {
  REEF_ASSIGN_OR_RETURN(const PictureLayout layout, picture_layout(tensor));
  REEF_REQUIRE(layout.height > 0 && layout.width > 0, "input '{}' has no pixels", tensor.name);
  REEF_ASSIGN_OR_RETURN(const image::Image original, image::load(path, layout.channels));
  const image::Image picture = image::resize(original, layout.width, layout.height);
  const auto channels = static_cast<std::size_t>(layout.channels);
  const std::size_t pixels = picture.samples.size() / channels;
  for (std::size_t i = 0; i < picture.samples.size(); ++i) {
    const std::size_t to = layout.channels_first ? (i % channels) * pixels + i / channels : i;
    REEF_RETURN_IF_ERROR(store_sample(tensor, scaling, target, to, picture.samples[i]));
  }
  return ok_status();
}

Result<std::vector<double>> as_reals(const ops::Tensor& tensor) {
  switch (tensor.type) {
    case DataType::kFloat32: {
      const auto values = tensor.values<float>();
      return std::vector<double>(values.begin(), values.end());
    }
    case DataType::kUInt8:
      return dequantize<std::uint8_t>(tensor);
    case DataType::kInt8:
      return dequantize<std::int8_t>(tensor);
    case DataType::kInt16:
      return dequantize<std::int16_t>(tensor);
    case DataType::kInt32:
      return dequantize<std::int32_t>(tensor);
    case DataType::kInt64:
      return dequantize<std::int64_t>(tensor);
    case DataType::kBool:
      return dequantize<std::uint8_t>(tensor);
    default:
      return unsupported("'{}' is {}; its values cannot be ranked", tensor.name, ir::type_name(tensor.type));
  }
}

Result<std::vector<std::string>> load_labels(const std::string& path) {
  REEF_ASSIGN_OR_RETURN(const Bytes file, read_file(path, std::uint64_t{1} << 24));
  std::istringstream lines(std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  std::vector<std::string> labels;
  std::size_t next = 0;
  for (std::string line; std::getline(lines, line); ++next) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), index);
    const auto digits = static_cast<std::size_t>(end - line.data());
    if (error == std::errc() && digits < line.size() &&
        std::string_view(" \t,:").find(line[digits]) != std::string_view::npos) {
      line.erase(0, line.find_first_not_of(" \t,:", digits));
      next = index;
    }
    REEF_REQUIRE(next < kMaxLabels, "'{}' numbers a label {}; that is too many", path, next);
    if (labels.size() <= next) labels.resize(next + 1);
    labels[next] = line;
  }
  return labels;
}

}  // namespace reef::app

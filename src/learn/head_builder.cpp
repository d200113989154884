// SPDX-License-Identifier: Apache-2.0
#include "learn/head_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "formats/tflite/operator_codes.h"

namespace reef::learn {
namespace {

ir::Quantization quantization_of(std::vector<float> scales, std::int32_t zero_point) {
  ir::Quantization result;
  result.zero_point.assign(scales.size(), zero_point);
  result.scale = std::move(scales);
  return result;
}

template <typename T>
std::vector<std::uint8_t> raw(const std::vector<T>& values) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::int32_t version_of(std::string_view type, ir::DataType operands) {
  if (type == "L2_NORMALIZATION") return operands == ir::DataType::kInt8 ? 2 : 1;
  return tflite::operator_version(type, operands);
}

}  // namespace

Affine affine_between(double low, double high, ir::DataType type) {
  low = std::min(low, 0.0);
  high = std::max(high, 0.0);
  // A tensor of zeros: any scale will do.
  if (!(high - low > 0)) return {1.0f, type == ir::DataType::kInt8 ? 0 : 0};
  const auto scale = static_cast<float>((high - low) / 255);
  const double zero = lowest_of(type) - low / scale;
  return {scale, static_cast<std::int32_t>(std::clamp<double>(std::lround(zero), lowest_of(type), highest_of(type)))};
}

std::uint8_t quantized(double real, const Affine& affine, ir::DataType type) {
  const double q = std::round(real / affine.scale) + affine.zero_point;
  const auto clamped = static_cast<std::int32_t>(std::clamp<double>(q, lowest_of(type), highest_of(type)));
  return static_cast<std::uint8_t>(clamped);
}

HeadBuilder::HeadBuilder(const ir::Tensor& embedding) : type_(embedding.type) {
  model_.buffers.resize(1);
  ir::Subgraph& graph = model_.subgraphs.emplace_back();
  graph.name = "head";
  ir::Tensor input = embedding;
  input.buffer = 0;
  graph.tensors.push_back(std::move(input));
  graph.inputs = {0};
}

ir::Model HeadBuilder::take(std::int32_t output) {
  model_.subgraphs[0].outputs = {output};
  return std::move(model_);
}

std::int32_t HeadBuilder::add(ir::Tensor tensor) {
  tensor.has_quantization = !tensor.quantization.scale.empty();
  ir::Subgraph& graph = model_.subgraphs[0];
  graph.tensors.push_back(std::move(tensor));
  return static_cast<std::int32_t>(graph.tensors.size()) - 1;
}

std::int32_t HeadBuilder::add_constant(ir::Tensor tensor, std::vector<std::uint8_t> bytes) {
  ir::Buffer buffer;
  buffer.data = Bytes(std::move(bytes));
  model_.buffers.push_back(std::move(buffer));
  tensor.buffer = static_cast<std::int32_t>(model_.buffers.size()) - 1;
  return add(std::move(tensor));
}

std::int32_t HeadBuilder::computed(std::string name, ir::Shape shape, const Affine& affine) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type_;
  tensor.shape = std::move(shape);
  if (is_quantized()) tensor.quantization = quantization_of({affine.scale}, affine.zero_point);
  return add(std::move(tensor));
}

std::int32_t HeadBuilder::weights(std::string name, ir::Shape shape, std::vector<std::uint8_t> bytes,
                                  std::vector<float> scales, std::int32_t zero_point) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type_;
  tensor.shape = std::move(shape);
  if (is_quantized()) tensor.quantization = quantization_of(std::move(scales), zero_point);
  return add_constant(std::move(tensor), std::move(bytes));
}

std::int32_t HeadBuilder::biases(std::string name, const std::vector<double>& values,
                                 const std::vector<double>& scales) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.shape = ir::Shape({static_cast<std::int32_t>(values.size())});
  if (!is_quantized()) {
    tensor.type = ir::DataType::kFloat32;
    return add_constant(std::move(tensor), raw(std::vector<float>(values.begin(), values.end())));
  }
  tensor.type = ir::DataType::kInt32;
  std::vector<std::int32_t> stored;
  for (std::size_t i = 0; i < values.size(); ++i) {
    constexpr double kMost = std::numeric_limits<std::int32_t>::max() / 2;
    stored.push_back(static_cast<std::int32_t>(
        std::clamp(std::round(values[i] / scales[scales.size() > 1 ? i : 0]), -kMost, kMost)));
  }
  tensor.quantization = quantization_of(std::vector<float>(scales.begin(), scales.end()), 0);
  return add_constant(std::move(tensor), raw(stored));
}

std::int32_t HeadBuilder::int_vector(std::string name, const std::vector<std::int32_t>& values) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = ir::DataType::kInt32;
  tensor.shape = ir::Shape({static_cast<std::int32_t>(values.size())});
  return add_constant(std::move(tensor), raw(values));
}

std::int32_t HeadBuilder::number(std::string name, double value) {
  ir::Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type_;
  tensor.shape = ir::Shape({1});
  if (!is_quantized()) return add_constant(std::move(tensor), raw(std::vector<float>{static_cast<float>(value)}));
  const std::int32_t q = highest_of(type_);
  tensor.quantization = quantization_of({static_cast<float>(value / q)}, 0);
  return add_constant(std::move(tensor), {static_cast<std::uint8_t>(q)});
}

std::int32_t HeadBuilder::op(std::string_view type, std::string_view options, ir::Attributes attributes,
                             std::vector<std::int32_t> inputs, std::int32_t output) {
  ir::Operator made;
  made.type = type;
  made.builtin_code = tflite::builtin_code(type);
  made.version = version_of(type, type_);
  made.options_type = options;
  made.attributes = std::move(attributes);
  made.inputs = std::move(inputs);
  made.outputs = {output};
  model_.subgraphs[0].operators.push_back(std::move(made));
  return output;
}

std::int32_t HeadBuilder::reshape(std::int32_t x, ir::Shape shape, std::string name) {
  const ir::Quantization& q = tensor(x).quantization;
  const Affine affine = is_quantized() ? Affine{q.scale[0], static_cast<std::int32_t>(q.zero_point[0])} : Affine{};
  ir::Attributes attributes;
  attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
  const std::int32_t sizes = int_vector(name + "/shape", shape.dims());
  const std::int32_t output = computed(std::move(name), shape, affine);
  return op("RESHAPE", "ReshapeOptions", std::move(attributes), {x, sizes}, output);
}

std::int32_t HeadBuilder::softmax(std::int32_t x, std::string name) {
  ir::Attributes attributes;
  attributes.set("beta", 1.0);
  // What TFLite demands of its results.
  const std::int32_t output = computed(std::move(name), tensor(x).shape, {1.0f / 256, lowest_of(type_)});
  return op("SOFTMAX", "SoftmaxOptions", std::move(attributes), {x}, output);
}

std::vector<std::uint8_t> bytes_of(const std::vector<float>& values) { return raw(values); }

}  // namespace reef::learn

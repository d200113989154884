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

std::int32_t version_of(OpName type, ir::DataType operands) {
  if (type == Op::L2_NORMALIZATION) return operands == ir::DataType::kInt8 ? 2 : 1;
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

ir::Quantization HeadBuilder::stored_by(std::vector<float> scales, std::int32_t zero_point) const {
  return is_quantized() ? quantization_of(std::move(scales), zero_point) : ir::Quantization();
}

std::int32_t HeadBuilder::computed(std::string name, ir::Shape shape, const Affine& affine) {
  return add_.add_tensor(std::move(name), std::move(shape), type_, stored_by({affine.scale}, affine.zero_point));
}

std::int32_t HeadBuilder::weights(std::string name, ir::Shape shape, std::vector<std::uint8_t> bytes,
                                  std::vector<float> scales, std::int32_t zero_point) {
  return add_.add_bytes(std::move(name), std::move(shape), type_, std::move(bytes),
                        stored_by(std::move(scales), zero_point));
}

std::int32_t HeadBuilder::biases(std::string name, const std::vector<double>& values,
                                 const std::vector<double>& scales) {
  const ir::Shape shape({static_cast<std::int32_t>(values.size())});
  if (!is_quantized()) {
    return add_.add_constant(std::move(name), shape, ir::DataType::kFloat32,
                             std::vector<float>(values.begin(), values.end()));
  }
  std::vector<std::int32_t> stored;
  for (std::size_t i = 0; i < values.size(); ++i) {
    constexpr double kMost = std::numeric_limits<std::int32_t>::max() / 2;
    stored.push_back(static_cast<std::int32_t>(
        std::clamp(std::round(values[i] / scales[scales.size() > 1 ? i : 0]), -kMost, kMost)));
  }
  return add_.add_constant(std::move(name), shape, ir::DataType::kInt32, stored,
                           quantization_of(std::vector<float>(scales.begin(), scales.end()), 0));
}

std::int32_t HeadBuilder::number(std::string name, double value) {
  const ir::Shape one({1});
  if (!is_quantized()) {
    return add_.add_constant(std::move(name), one, type_, std::vector<float>{static_cast<float>(value)});
  }
  const std::int32_t q = highest_of(type_);
  return add_.add_bytes(std::move(name), one, type_, {static_cast<std::uint8_t>(q)},
                        quantization_of({static_cast<float>(value / q)}, 0));
}

std::int32_t HeadBuilder::op(OpName type, std::string_view options, ir::Attributes attributes,
                             std::vector<std::int32_t> inputs, std::int32_t output) {
  ir::Operator& made = add_.op(type, options, std::move(inputs), output);
  made.version = version_of(type, type_);
  made.attributes = std::move(attributes);
  return output;
}

std::int32_t HeadBuilder::reshape(std::int32_t x, ir::Shape shape, std::string name) {
  const ir::Quantization& q = tensor(x).quantization;
  const Affine affine = is_quantized() ? Affine{q.scale[0], static_cast<std::int32_t>(q.zero_point[0])} : Affine{};
  const std::int32_t sizes = add_.add_ints(name + "/shape", shape.dims());
  ir::Attributes attributes;
  attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
  const std::int32_t output = computed(std::move(name), shape, affine);
  return op(Op::RESHAPE, "ReshapeOptions", std::move(attributes), {x, sizes}, output);
}

std::int32_t HeadBuilder::softmax(std::int32_t x, std::string name) {
  ir::Attributes attributes;
  attributes.set("beta", 1.0);
  // TFLite's kernels demand this scale and zero point.
  const std::int32_t output = computed(std::move(name), tensor(x).shape, {1.0f / 256, lowest_of(type_)});
  return op(Op::SOFTMAX, "SoftmaxOptions", std::move(attributes), {x}, output);
}

}  // namespace reef::learn

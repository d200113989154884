// SPDX-License-Identifier: Apache-2.0
// The makers of OpList that need weights.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/op_list.h"

namespace reef::graph {
namespace {

constexpr std::int32_t kMostLineChannels = 1 << 20;  // each takes a weight, a bias and two scales
constexpr std::int64_t kMostConstantElements = 1 << 16;
constexpr std::int64_t kMostPickedWeights = 1 << 21;  // 1,024 of 2,048 channels: 2 MiB

ir::Attributes convolution_attributes() {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_w", std::int64_t{1});
  attributes.set("stride_h", std::int64_t{1});
  return attributes;
}

void finish_attributes(ir::Attributes& attributes) {
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  attributes.set("dilation_w_factor", std::int64_t{1});
  attributes.set("dilation_h_factor", std::int64_t{1});
}

}  // namespace

std::int32_t OpList::bias(std::vector<std::int32_t> values, std::vector<float> scales) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = ir::DataType::kInt32;
  tensor.shape = {static_cast<std::int32_t>(values.size())};
  tensor.has_quantization = true;
  tensor.quantization.zero_point.assign(scales.size(), 0);
  tensor.quantization.scale = std::move(scales);
  return graph_.add_constant(std::move(tensor), bytes_of(values));
}

std::int32_t OpList::weights(ir::Shape shape, ir::DataType type, std::vector<std::uint8_t> values,
                             std::vector<float> scales, std::int32_t zero_point, std::int32_t dimension) {
  ir::Tensor tensor;
  tensor.name = next_name();
  tensor.type = type;
  tensor.shape = shape;
  tensor.has_quantization = true;
  tensor.quantization.zero_point.assign(scales.size(), zero_point);
  tensor.quantization.scale = std::move(scales);
  tensor.quantization.dimension = dimension;
  return graph_.add_constant(std::move(tensor), std::move(values));
}

std::int32_t OpList::line(std::int32_t x, double slope, double offset, const Affine8& result, std::int32_t into) {
  const auto in = graph_.affine(x);
  const ir::Shape shape = graph_.shape(x);
  if (!in || shape.rank() != 4 || slope == 0 || shape[3] > kMostLineChannels) return -1;
  const bool is_signed = in->type == ir::DataType::kInt8;
  // One weight for all channels, as large as its type holds: its scale carries the slope, and the bias gets the finest
  // unit. A negative uint8 weight is 0 with the zero point on top.
  const double magnitude = is_signed ? 127 : 255;
  const auto weight_scale = static_cast<float>(std::abs(slope) / magnitude);
  const double unit = static_cast<double>(in->scale) * weight_scale;
  const double offset_units = std::round(offset / unit);
  if (!std::isnormal(weight_scale) || !std::isnormal(static_cast<float>(unit))) return -1;
  if (!(std::abs(offset_units) < (1 << 30))) return -1;
  const std::int32_t channels = shape[3];
  const auto count = static_cast<std::size_t>(channels);
  const std::size_t scales = is_signed ? count : 1;
  const std::int32_t weight = is_signed ? (slope > 0 ? 127 : -127) : (slope > 0 ? 255 : 0);
  const std::int32_t filter =
      weights({1, 1, 1, channels}, in->type, std::vector<std::uint8_t>(count, static_cast<std::uint8_t>(weight)),
              std::vector<float>(scales, weight_scale), is_signed || slope > 0 ? 0 : 255, is_signed ? 3 : 0);
  const std::int32_t offsets = bias(std::vector<std::int32_t>(count, static_cast<std::int32_t>(offset_units)),
                                    std::vector<float>(scales, in->scale * weight_scale));
  const std::int32_t y = into == kNew ? tensor(shape, result) : into;
  ir::Attributes attributes = convolution_attributes();
  attributes.set("depth_multiplier", std::int64_t{1});
  finish_attributes(attributes);
  add(Op::DEPTHWISE_CONV_2D, "DepthwiseConv2DOptions", std::move(attributes), {x, filter, offsets}, {y}, in->type);
  return y;
}

std::int32_t OpList::channels_picked(std::int32_t x, std::span<const std::int32_t> channels) {
  const auto affine = graph_.affine(x);
  ir::Shape shape = graph_.shape(x);
  const auto count = static_cast<std::int32_t>(channels.size());
  if (!affine || shape.rank() != 4 || count == 0 || std::int64_t{count} * shape[3] > kMostPickedWeights) return -1;
  const bool is_signed = affine->type == ir::DataType::kInt8;
  const auto inputs = static_cast<std::size_t>(shape[3]);
  std::vector<std::uint8_t> values(channels.size() * inputs, 0);
  for (std::size_t i = 0; i < channels.size(); ++i) values[i * inputs + static_cast<std::size_t>(channels[i])] = 1;
  const std::size_t scales = is_signed ? channels.size() : 1;
  const std::int32_t filter =
      weights({count, 1, 1, shape[3]}, affine->type, std::move(values), std::vector<float>(scales, 1.0f), 0, 0);
  const std::int32_t zeros =
      bias(std::vector<std::int32_t>(channels.size(), 0), std::vector<float>(scales, affine->scale));
  shape[3] = count;
  const std::int32_t y = tensor_like(x, shape);
  ir::Attributes attributes = convolution_attributes();
  finish_attributes(attributes);
  add(Op::CONV_2D, "Conv2DOptions", std::move(attributes), {x, filter, zeros}, {y}, affine->type);
  return y;
}

std::int32_t OpList::constant(std::int32_t like, std::int32_t anchor, std::int32_t into) {
  const auto in = graph_.affine(anchor), out = graph_.affine(like);
  const ir::Shape shape = graph_.shape(like);
  const std::int64_t elements = shape.elements();
  if (!in || !out || in->type != out->type || !graph_.is_constant(like) || elements < 1 ||
      elements > kMostConstantElements) {
    return -1;
  }
  const std::vector<std::uint8_t> data = [&] {
    const std::span<const std::uint8_t> bytes = ir::constant_data(graph_.model(), graph_.tensor(like)).span();
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  }();
  const float weight_scale = out->scale / in->scale;
  if (static_cast<std::int64_t>(data.size()) != elements || !std::isnormal(weight_scale)) return -1;
  // A few elements of the anchor, times zero.
  ir::Shape box = graph_.shape(anchor);
  const std::int32_t inputs = std::min(box.last(), 4);
  for (int axis = 0; axis < box.rank(); ++axis) box[axis] = axis + 1 == box.rank() ? inputs : 1;
  const std::vector<std::int64_t> begins(static_cast<std::size_t>(box.rank()), 0);
  std::int32_t x = slice_box(anchor, begins, box);
  if (box.rank() != 4) x = reshape(x, {1, 1, 1, inputs});
  const auto count = static_cast<std::int32_t>(elements);
  const bool is_signed = in->type == ir::DataType::kInt8;
  const std::size_t scales = is_signed ? data.size() : 1;
  std::vector<std::int32_t> offsets;
  for (const std::uint8_t byte : data) {
    offsets.push_back((is_signed ? static_cast<std::int8_t>(byte) : byte) - out->zero_point);
  }
  const std::int32_t filter = weights({count, 1, 1, inputs}, in->type,
                                      std::vector<std::uint8_t>(data.size() * static_cast<std::size_t>(inputs)),
                                      std::vector<float>(scales, weight_scale), 0, 0);
  const std::int32_t numbers = bias(std::move(offsets), std::vector<float>(scales, in->scale * weight_scale));
  const bool is_flat = shape == ir::Shape({1, 1, 1, count});
  const std::int32_t flat = is_flat && into != kNew ? into : tensor({1, 1, 1, count}, *out);
  pointwise(x, filter, numbers, "NONE", flat);
  return is_flat ? flat : reshape(flat, shape, into);
}

std::int32_t OpList::pointwise(std::int32_t x, std::int32_t filter, std::int32_t offsets, std::string_view activation,
                               std::int32_t into) {
  ir::Attributes attributes = convolution_attributes();
  finish_attributes(attributes);
  attributes.set("fused_activation_function", ir::EnumName{std::string(activation)});
  add(Op::CONV_2D, "Conv2DOptions", std::move(attributes), {x, filter, offsets}, {into}, graph_.tensor(x).type);
  return into;
}

}  // namespace reef::graph

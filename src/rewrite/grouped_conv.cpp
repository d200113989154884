// SPDX-License-Identifier: Apache-2.0
// A convolution in groups is one convolution per group: SPLIT of the channels, CONV_2D each, CONCATENATION; where each
// group is one channel (ConvNeXt), it is a DEPTHWISE_CONV_2D. The numbers that each output is made of are the same.
//
// All operators of a type in a file have one version, the newest that any of them needs, so that convolutions beside
// one in groups are refused with it. They only need their own version back.
#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

constexpr std::int32_t kMostGroups = 64;

// Elements [begin, begin + count) along dimension 0 of a constant, with their scales.
std::int32_t part_of(GraphEdit& edit, std::int32_t index, std::int32_t begin, std::int32_t count) {
  ir::Tensor tensor = edit.tensor(index);
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  const std::size_t row = data.size() / static_cast<std::size_t>(tensor.shape[0]);
  const auto first = data.begin() + static_cast<std::ptrdiff_t>(row) * begin;
  std::vector<std::uint8_t> bytes(first, first + static_cast<std::ptrdiff_t>(row) * count);
  const auto cut = [&](auto& values) {
    if (values.size() > 1) values = {values.begin() + begin, values.begin() + begin + count};
  };
  cut(tensor.quantization.scale);
  cut(tensor.quantization.zero_point);
  tensor.shape[0] = count;
  tensor.shape_signature.clear();
  return edit.add_constant(std::move(tensor), std::move(bytes));
}

// Constant, with rows along dimension 0 that can be taken apart.
bool is_divisible(const GraphEdit& edit, std::int32_t index, std::int32_t rows) {
  const ir::Tensor& tensor = edit.tensor(index);
  const ir::Quantization& quantization = tensor.quantization;
  if (!edit.is_constant(index) || tensor.shape.rank() < 1 || tensor.shape[0] != rows) return false;
  if (ir::bits_per_element(tensor.type) < 8 || quantization.dimension != 0) return false;
  const auto fits = [&](std::size_t count) { return count <= 1 || count == static_cast<std::size_t>(rows); };
  return fits(quantization.scale.size()) && fits(quantization.zero_point.size());
}

struct Convolution {
  ir::Operator op;
  std::int32_t x = -1, weights = -1, bias = -1, y = -1;
  std::int32_t groups = 1;
};

std::optional<Convolution> convolution_at(const GraphEdit& edit, std::int32_t index) {
  if (edit.op(index).type != "CONV_2D" || !edit.is_sound(index)) return {};
  Convolution found{edit.op(index)};
  found.x = found.op.inputs[0];
  found.weights = found.op.inputs[1];
  found.bias = found.op.inputs.size() > 2 ? found.op.inputs[2] : -1;
  found.y = found.op.outputs[0];
  const ir::Shape &shape = edit.shape(found.x), &filter = edit.shape(found.weights), &result = edit.shape(found.y);
  const auto in = edit.affine(found.x), out = edit.affine(found.y);
  if (!in || !out || in->type != out->type || shape.rank() != 4 || filter.rank() != 4 || result.rank() != 4) return {};
  if (filter[3] < 1 || shape[3] % filter[3] != 0 || result[3] != filter[0]) return {};
  found.groups = shape[3] / filter[3];
  if (found.groups < 1 || filter[0] % found.groups != 0) return {};
  if (!is_divisible(edit, found.weights, filter[0])) return {};
  if (found.bias >= 0 && !is_divisible(edit, found.bias, filter[0])) return {};
  return found;
}

bool as_depthwise(GraphEdit& edit, std::int32_t index, const Convolution& found) {
  ir::Tensor tensor = edit.tensor(found.weights);
  const std::int32_t channels = tensor.shape[0];
  const auto area = static_cast<std::size_t>(tensor.shape[1]) * static_cast<std::size_t>(tensor.shape[2]);
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  if (data.size() != area * static_cast<std::size_t>(channels)) return false;
  std::vector<std::uint8_t> bytes(data.size());
  for (std::size_t c = 0; c < static_cast<std::size_t>(channels); ++c) {
    for (std::size_t i = 0; i < area; ++i) bytes[i * static_cast<std::size_t>(channels) + c] = data[c * area + i];
  }
  tensor.shape = {1, tensor.shape[1], tensor.shape[2], channels};
  tensor.shape_signature.clear();
  tensor.quantization.dimension = 3;
  std::vector<std::int32_t> inputs = {found.x, edit.add_constant(std::move(tensor), std::move(bytes))};
  if (found.bias >= 0) inputs.push_back(found.bias);
  ir::Attributes attributes;
  for (const char* name : {"padding", "fused_activation_function"}) {
    attributes.set(name,
                   ir::EnumName{std::string(found.op.attributes.get_enum(name, name[0] == 'p' ? "SAME" : "NONE"))});
  }
  for (const char* name : {"stride_w", "stride_h", "dilation_w_factor", "dilation_h_factor"}) {
    attributes.set(name, found.op.attributes.get_int(name, 1));
  }
  attributes.set("depth_multiplier", std::int64_t{channels / found.groups});
  OpList list(edit, edit.tensor(found.y).name);
  list.add("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", std::move(attributes), inputs, {found.y},
           edit.tensor(found.x).type);
  return edit.commit(index, list.take(), "DEPTHWISE_CONV_2D");
}

bool as_parts(GraphEdit& edit, std::int32_t index, const Convolution& found) {
  OpList list(edit, edit.tensor(found.y).name);
  const std::vector<std::int32_t> pieces = list.split(found.x, 3, found.groups);
  ir::Shape piece_shape = edit.shape(found.y);
  const std::int32_t channels = piece_shape[3] / found.groups;
  piece_shape[3] = channels;
  std::vector<std::int32_t> parts;
  for (std::int32_t i = 0; i < found.groups; ++i) {
    std::vector<std::int32_t> inputs = {pieces[static_cast<std::size_t>(i)],
                                        part_of(edit, found.weights, i * channels, channels)};
    if (found.bias >= 0) inputs.push_back(part_of(edit, found.bias, i * channels, channels));
    parts.push_back(list.tensor_like(found.y, piece_shape));
    list.add("CONV_2D", "Conv2DOptions", found.op.attributes, inputs, {parts.back()}, edit.tensor(found.x).type);
  }
  list.concatenation(parts, 3, found.y);
  return edit.commit(index, list.take(), fmt::format("SPLIT, {} CONV_2D and CONCATENATION", found.groups));
}

bool at(GraphEdit& edit, std::int32_t index) {
  const auto found = convolution_at(edit, index);
  if (!found || edit.fits(index)) return false;
  const ir::DataType type = edit.tensor(found->x).type;
  if (found->groups == 1) {
    if (found->op.version <= operator_version("CONV_2D", type)) return false;
    OpList list(edit, edit.tensor(found->y).name);
    list.add("CONV_2D", "Conv2DOptions", found->op.attributes, found->op.inputs, {found->y}, type);
    return edit.commit(index, list.take(), "an older version of it, which does the same");
  }
  if (edit.shape(found->weights)[3] == 1 && ir::is_integer_8(edit.tensor(found->weights).type) &&
      as_depthwise(edit, index, *found)) {
    return true;
  }
  return found->groups <= kMostGroups && as_parts(edit, index, *found);
}

}  // namespace

extern const Rewrite grouped_conv_rewrite;
constinit const Rewrite grouped_conv_rewrite = {
    .info = {.name = "grouped-conv",
             .summary =
                 "A convolution in groups becomes DEPTHWISE_CONV_2D where each is one channel, else (up to 64 groups) "
                 "SPLIT, a CONV_2D for each and CONCATENATION; the others in the file get their old version back.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

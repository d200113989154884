// SPDX-License-Identifier: Apache-2.0
// A convolution in groups is one convolution per group: the channels taken apart, CONV_2D each, CONCATENATION; where
// each group is one channel (ConvNeXt), it is a DEPTHWISE_CONV_2D. The numbers that each output is made of are the
// same.
//
// The chip computes 64 channels at once, whatever few of them there are. So groups are convolved together, with weights
// of zero between them, as long as they make no more than 64 channels: 128 channels in 32 groups take two convolutions
// and not 32.
//
// All operators of a type in a file have one version, the newest that any of them needs, so that convolutions beside
// one in groups are refused with it. They only need their own version back.
#include <algorithm>

#include "formats/tflite/operator_codes.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostParts = 64;
constexpr std::int32_t kChannelsAtOnce = 64;         // the chip's cells (chip::kCells)
constexpr std::int64_t kMostWeightBytes = 16 << 20;  // of all parts, zeros included

// Elements [begin, begin + count) along dimension 0 of a constant, with their scales.
std::int32_t part_of(ChipGraph& edit, std::int32_t index, std::int32_t begin, std::int32_t count) {
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
bool is_divisible(const ChipGraph& edit, std::int32_t index, std::int32_t rows) {
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

std::optional<Convolution> convolution_at(const ChipGraph& edit, std::int32_t index) {
  if (edit.op(index).type != Op::CONV_2D || !edit.is_sound(index)) return {};
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

bool as_depthwise(ChipGraph& edit, std::int32_t index, const Convolution& found) {
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
  list.add(Op::DEPTHWISE_CONV_2D, "DepthwiseConv2DOptions", std::move(attributes), inputs, {found.y},
           edit.tensor(found.x).type);
  return edit.commit(index, list.take(), "DEPTHWISE_CONV_2D");
}

// Weights of `count` groups from `first` on as those of one convolution: zeros where a filter does not look.
std::int32_t joined_weights(ChipGraph& edit, const Convolution& found, std::int32_t first, std::int32_t count) {
  const std::int32_t outputs = edit.shape(found.weights)[0] / found.groups;  // of a group
  const std::int32_t part = part_of(edit, found.weights, first * outputs, count * outputs);
  if (count == 1) return part;
  ir::Tensor tensor = edit.tensor(part);
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  const auto inputs = static_cast<std::size_t>(tensor.shape[3]), all = inputs * static_cast<std::size_t>(count);
  const auto rows = data.size() / inputs;  // filters times their positions
  const std::size_t rows_of_group = rows / static_cast<std::size_t>(count);
  const std::vector<std::int64_t>& zero_points = tensor.quantization.zero_point;
  const auto zero = static_cast<std::uint8_t>(zero_points.empty() ? 0 : zero_points[0]);
  std::vector<std::uint8_t> bytes(rows * all, zero);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row * all + row / rows_of_group * inputs;
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(row * inputs), inputs,
                bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  tensor.shape[3] = static_cast<std::int32_t>(all);
  return edit.add_constant(std::move(tensor), std::move(bytes));
}

// One zero point for all weights: what stands between groups is zero by it.
bool has_one_zero(const ChipGraph& edit, std::int32_t weights) {
  const std::vector<std::int64_t>& points = edit.tensor(weights).quantization.zero_point;
  return ir::is_integer_8(edit.tensor(weights).type) &&
         std::all_of(points.begin(), points.end(), [&](std::int64_t point) { return point == points[0]; });
}

bool as_parts(ChipGraph& edit, std::int32_t index, const Convolution& found) {
  const ir::Shape filter = edit.shape(found.weights);
  const std::int32_t inputs = filter[3], outputs = filter[0] / found.groups;  // of a group
  std::int32_t together = has_one_zero(edit, found.weights) ? std::max(1, kChannelsAtOnce / outputs) : 1;
  together = std::min(together, found.groups);
  const std::int32_t parts = (found.groups + together - 1) / together;
  together = (found.groups + parts - 1) / parts;
  const std::int64_t bytes = std::int64_t{filter[0]} * filter[1] * filter[2] * inputs * together;
  if (parts > kMostParts || bytes > kMostWeightBytes) return false;
  OpList list(edit, edit.tensor(found.y).name);
  const bool is_even = found.groups % together == 0;
  std::vector<std::int32_t> pieces;
  if (parts > 1 && is_even) pieces = list.split(found.x, 3, parts);
  std::vector<std::int32_t> results;
  for (std::int32_t i = 0; i < parts; ++i) {
    const std::int32_t first = i * together, count = std::min(together, found.groups - first);
    const std::int32_t piece = parts == 1 ? found.x
                               : is_even  ? pieces[at(i)]
                                          : list.slice(found.x, 3, first * inputs, count * inputs);
    std::vector<std::int32_t> operands = {piece, joined_weights(edit, found, first, count)};
    if (found.bias >= 0) operands.push_back(part_of(edit, found.bias, first * outputs, count * outputs));
    ir::Shape shape = edit.shape(found.y);
    shape[3] = count * outputs;
    results.push_back(parts == 1 ? found.y : list.tensor_like(found.y, shape));
    list.add(Op::CONV_2D, "Conv2DOptions", found.op.attributes, operands, {results.back()}, edit.tensor(found.x).type);
  }
  if (parts == 1) return edit.commit(index, list.take(), "a CONV_2D of all channels");
  list.concatenation(results, 3, found.y);
  return edit.commit(index, list.take(), fmt::format("{} CONV_2D of parts of the channels and CONCATENATION", parts));
}

bool grouped_conv_at(ChipGraph& edit, std::int32_t index) {
  const auto found = convolution_at(edit, index);
  if (!found || edit.fits(index)) return false;
  const ir::DataType type = edit.tensor(found->x).type;
  if (found->groups == 1) {
    if (found->op.version <= tflite::operator_version(Op::CONV_2D, type)) return false;
    OpList list(edit, edit.tensor(found->y).name);
    list.add(Op::CONV_2D, "Conv2DOptions", found->op.attributes, found->op.inputs, {found->y}, type);
    return edit.commit(index, list.take(), "an older version of it, which does the same");
  }
  if (edit.shape(found->weights)[3] == 1 && ir::is_integer_8(edit.tensor(found->weights).type) &&
      as_depthwise(edit, index, *found)) {
    return true;
  }
  return as_parts(edit, index, *found);
}

}  // namespace

constinit const Pass grouped_conv_chip_pass = {
    .name = "grouped-conv",
    .summary =
        "A convolution in groups becomes DEPTHWISE_CONV_2D where each is one channel, else CONV_2D of as many "
        "groups together as make 64 channels, and CONCATENATION; the others in the file get their old version "
        "back.",
    .at_on_chip = grouped_conv_at};

}  // namespace reef::passes

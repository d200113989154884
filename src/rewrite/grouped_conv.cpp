// SPDX-License-Identifier: Apache-2.0
// A convolution in groups is one convolution per group: SPLIT of the channels, CONV_2D each, CONCATENATION. The numbers
// that each output is made of are the same.
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

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != "CONV_2D" || !edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0], weights = op.inputs[1];
  const std::int32_t bias = op.inputs.size() > 2 ? op.inputs[2] : -1;
  const ir::Shape shape = edit.shape(x), filter = edit.shape(weights), result = edit.shape(y);
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type || shape.rank() != 4 || filter.rank() != 4 || result.rank() != 4)
    return false;
  if (filter[3] < 1 || shape[3] % filter[3] != 0 || result[3] != filter[0]) return false;
  const std::int32_t groups = shape[3] / filter[3];
  if (groups < 2 || groups > kMostGroups || filter[0] % groups != 0 || edit.fits(index)) return false;
  if (!is_divisible(edit, weights, filter[0]) || (bias >= 0 && !is_divisible(edit, bias, filter[0]))) return false;
  OpList list(edit, edit.tensor(y).name);
  const std::vector<std::int32_t> pieces = list.split(x, 3, groups);
  const std::int32_t channels = filter[0] / groups;
  ir::Shape piece_shape = result;
  piece_shape[3] = channels;
  std::vector<std::int32_t> parts;
  for (std::int32_t i = 0; i < groups; ++i) {
    std::vector<std::int32_t> inputs = {pieces[static_cast<std::size_t>(i)],
                                        part_of(edit, weights, i * channels, channels)};
    if (bias >= 0) inputs.push_back(part_of(edit, bias, i * channels, channels));
    parts.push_back(list.tensor_like(y, piece_shape));
    list.add("CONV_2D", "Conv2DOptions", op.attributes, inputs, {parts.back()}, in->type);
  }
  list.concatenation(parts, 3, y);
  return edit.commit(index, list.take(), fmt::format("SPLIT, {} CONV_2D and CONCATENATION", groups));
}

}  // namespace

extern const Rewrite grouped_conv_rewrite;
constinit const Rewrite grouped_conv_rewrite = {
    .info = {.name = "grouped-conv",
             .summary = "A convolution in 2 to 64 groups becomes SPLIT, a CONV_2D for each group and CONCATENATION.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

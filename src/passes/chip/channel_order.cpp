// SPDX-License-Identifier: Apache-2.0
#include "passes/chip/channel_order.h"
#include "ir/op.h"

#include <algorithm>

namespace reef::passes {
namespace {

// A constant whose outermost dimension is channels, in another order.
std::optional<std::int32_t> reordered_constant(ChipGraph& edit, std::int32_t index,
                                               const std::vector<std::int32_t>& channels) {
  ir::Tensor tensor = edit.tensor(index);
  if (!edit.is_constant(index) || tensor.shape.rank() < 1 || tensor.shape[0] != static_cast<int>(channels.size())) {
    return {};
  }
  if (ir::bits_per_element(tensor.type) < 8) return {};
  if (!std::holds_alternative<std::monostate>(tensor.quantization.details)) return {};
  ir::Quantization& quantization = tensor.quantization;
  if (quantization.is_per_axis() &&
      (quantization.scale.size() != channels.size() || (tensor.shape.rank() > 1 && quantization.dimension != 0))) {
    return {};
  }
  const ir::Quantization old = quantization;
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  const std::size_t row = data.size() / channels.size();
  std::vector<std::uint8_t> bytes;
  bytes.reserve(data.size());
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const auto from = static_cast<std::size_t>(channels[i]);
    const auto begin = data.begin() + static_cast<std::ptrdiff_t>(from * row);
    bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(row));
    if (!old.is_per_axis()) continue;
    quantization.scale[i] = old.scale[from];
    if (!old.zero_point.empty()) quantization.zero_point[i] = old.zero_point[from];
  }
  quantization.min.clear();
  quantization.max.clear();
  return edit.add_constant(std::move(tensor), std::move(bytes));
}

}  // namespace

bool is_ordered_for_free(const ChipGraph& edit, std::int32_t x) {
  const std::int32_t producer = edit.producer(x);
  return producer >= 0 && edit.op(producer).type == Op::CONV_2D && edit.is_sound(producer) && edit.has_one_user(x);
}

std::int32_t reordered(ChipGraph& edit, OpList& list, std::int32_t x, const std::vector<std::int32_t>& channels) {
  if (is_ordered_for_free(edit, x)) {
    const ir::Operator op = edit.op(edit.producer(x));
    const auto filter = reordered_constant(edit, op.inputs[1], channels);
    const bool has_bias = op.inputs.size() > 2 && op.inputs[2] >= 0;
    const auto bias = has_bias ? reordered_constant(edit, op.inputs[2], channels) : std::optional<std::int32_t>(-1);
    if (filter && bias) {
      std::vector<std::int32_t> inputs = {op.inputs[0], *filter};
      if (has_bias) inputs.push_back(*bias);
      const std::int32_t y = list.tensor_like(x, edit.shape(x));
      list.add(op.type, op.options_type, op.attributes, std::move(inputs), {y}, edit.tensor(x).type);
      list.last().version = op.version;
      return y;
    }
  }
  return list.channels_picked(x, channels);
}

std::optional<ChannelOrder> channel_order(const std::vector<Factor>& factors, std::int32_t channels) {
  if (channels < 2) return {};
  ChannelOrder order;
  order.factors = factors;
  std::vector<std::size_t> inner;  // factors of channels, in the order of the result
  std::int64_t product = 1;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (factors[i].stride >= channels) continue;
    if (factors[i].stride * factors[i].size > channels) return {};
    inner.push_back(i);
    product *= factors[i].size;
  }
  if (product != channels || inner.size() < 2) return {};
  std::int64_t stride = channels;
  bool changes = false;
  for (const std::size_t i : inner) {
    stride /= factors[i].size;
    changes = changes || stride != factors[i].stride;
    order.factors[i].stride = stride;
  }
  if (!changes) return {};
  for (std::int32_t channel = 0; channel < channels; ++channel) {
    std::int64_t old = 0;
    for (const std::size_t i : inner) old += channel / order.factors[i].stride % factors[i].size * factors[i].stride;
    order.channels.push_back(static_cast<std::int32_t>(old));
  }
  // Factors that now follow without a gap become one.
  std::vector<Factor> merged;
  for (const Factor& factor : order.factors) {
    if (!merged.empty() && merged.back().stride == factor.stride * factor.size) {
      merged.back() = {merged.back().size * factor.size, factor.stride};
    } else {
      merged.push_back(factor);
    }
  }
  order.factors = std::move(merged);
  return order;
}

}  // namespace reef::passes

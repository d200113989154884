// SPDX-License-Identifier: Apache-2.0
// The operators of Graph that bring tensors and constants into other layouts.
#include <cstring>

#include "graph/graph.h"

namespace reef::graph {

std::vector<std::uint8_t> rearranged(std::span<const std::uint8_t> data, const ir::Shape& shape,
                                     std::size_t element_bytes, const Layout& layout) {
  std::vector<std::uint8_t> result(data.size());
  if (data.empty()) return result;
  std::vector<std::size_t> strides(static_cast<std::size_t>(shape.rank()), element_bytes);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    strides[reef::at(axis)] = strides[static_cast<std::size_t>(axis) + 1] * static_cast<std::size_t>(shape[axis + 1]);
  }
  // Counts through the result's elements in order and keeps the place of each in the source.
  struct Counter {
    std::size_t size, stride, at;
  };
  std::vector<Counter> counters;
  for (const int axis : layout) {
    if (axis >= 0 && shape[axis] != 1) {
      counters.push_back({static_cast<std::size_t>(shape[axis]), strides[reef::at(axis)], 0});
    }
  }
  std::size_t source = 0;
  for (std::size_t target = 0; target < result.size(); target += element_bytes) {
    std::memcpy(&result[target], &data[source], element_bytes);
    for (std::size_t i = counters.size(); i-- > 0;) {
      Counter& counter = counters[i];
      source += counter.stride;
      if (++counter.at < counter.size) break;
      source -= counter.stride * counter.size;
      counter.at = 0;
    }
  }
  return result;
}

bool Graph::can_lay_out(TensorId id, const Layout& layout) const {
  const ir::Tensor& it = tensor(id);
  if (ir::bits_per_element(it.type) < 8 || it.sparsity) return false;
  if (!std::holds_alternative<std::monostate>(it.quantization.details)) return false;
  return !it.quantization.is_per_axis() || position_of(it.quantization.dimension, layout) >= 0;
}

TensorId Graph::add_in_layout(TensorId id, const Layout& layout) {
  const ir::Shape shape = this->shape(id);
  const bool is_constant = this->is_constant(id);
  const std::int32_t buffer = tensor(id).buffer;
  const TensorId made = add_like(id, laid_out(shape, layout));
  ir::Quantization& quantization = change_tensor(made).quantization;
  if (quantization.is_per_axis()) quantization.dimension = position_of(quantization.dimension, layout);
  if (!is_constant) return made;
  if (!moves_elements(layout, shape)) {
    give_buffer(made, buffer);
    return made;
  }
  const auto element_bytes = static_cast<std::size_t>(ir::bits_per_element(tensor(made).type) / 8);
  ir::Buffer moved;
  moved.data = Bytes(rearranged(model_->buffers[index(buffer)].data.span(), shape, element_bytes, layout));
  model_->buffers.push_back(std::move(moved));
  give_buffer(made, static_cast<std::int32_t>(model_->buffers.size()) - 1);
  return made;
}

TensorId Graph::reshape(OpId near, TensorId x, ir::Shape shape, TensorId into) {
  const std::vector<std::int64_t> dims(shape.begin(), shape.end());
  const TensorId target = add_ints({shape.begin(), shape.end()});
  const TensorId y = into == kNone ? add_like(x, std::move(shape)) : into;
  ir::Attributes attributes;
  attributes.set("new_shape", dims);
  add_op(near, Op::RESHAPE, "ReshapeOptions", std::move(attributes), {x, target}, {y});
  return y;
}

TensorId Graph::convert(OpId near, TensorId x, const Layout& layout, TensorId into) {
  const ir::Shape shape = this->shape(x);
  const ir::Shape result = laid_out(shape, layout);
  if (!moves_elements(layout, shape)) {
    const TensorId y = into == kNone ? add_in_layout(x, layout) : into;
    return reshape(near, x, result, y);
  }
  // The axes that are there anyway, in order; those left out, of size 1, behind them.
  Layout permutation;
  for (const int axis : layout) {
    if (axis >= 0) permutation.push_back(axis);
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (position_of(axis, permutation) < 0) permutation.push_back(axis);
  }
  const bool is_whole = permutation == layout;
  const TensorId turned = is_whole && into != kNone ? into : add_in_layout(x, permutation);
  const TensorId order = add_ints({permutation.begin(), permutation.end()});
  add_op(near, Op::TRANSPOSE, "TransposeOptions", {}, {x, order}, {turned});
  if (is_whole) return turned;
  const TensorId y = into == kNone ? add_in_layout(x, layout) : into;
  return reshape(near, turned, result, y);
}

}  // namespace reef::graph

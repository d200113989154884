// SPDX-License-Identifier: Apache-2.0
// Layouts as operators and constants, and writing an edited graph back into its model.
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "graph/graph.h"

namespace reef::simplify {

std::vector<std::uint8_t> rearranged(std::span<const std::uint8_t> data, const ir::Shape& shape,
                                     std::size_t element_bytes, const Layout& layout) {
  std::vector<std::uint8_t> result(data.size());
  if (data.empty()) return result;
  std::vector<std::size_t> strides(static_cast<std::size_t>(shape.rank()), element_bytes);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    strides[static_cast<std::size_t>(axis)] =
        strides[static_cast<std::size_t>(axis) + 1] * static_cast<std::size_t>(shape[axis + 1]);
  }
  // Counts through the result's elements in order and keeps the place of each in the source.
  struct Counter {
    std::size_t size, stride, at;
  };
  std::vector<Counter> counters;
  for (const int axis : layout) {
    if (axis >= 0 && shape[axis] != 1) {
      counters.push_back({static_cast<std::size_t>(shape[axis]), strides[static_cast<std::size_t>(axis)], 0});
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
  add_op(near, "RESHAPE", "ReshapeOptions", std::move(attributes), {x, target}, {y});
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
  add_op(near, "TRANSPOSE", "TransposeOptions", {}, {x, order}, {turned});
  if (is_whole) return turned;
  const TensorId y = into == kNone ? add_in_layout(x, layout) : into;
  return reshape(near, turned, result, y);
}

// Operators as soon as what they need is there, the first in the file's order first.
Result<std::vector<OpId>> Graph::order() const {
  std::vector<int> missing(ops_.size(), 0);
  std::vector<std::vector<OpId>> followers(ops_.size());
  const auto precede = [&](OpId first, OpId second) {
    followers[index(first)].push_back(second);
    ++missing[index(second)];
  };
  OpId last_effect = kNone;
  std::set<std::pair<std::int64_t, OpId>> ready;
  std::size_t alive = 0;
  for (OpId id = 0; id < op_slots(); ++id) {
    if (!is_alive(id)) continue;
    ++alive;
    for (const TensorId input : op(id).inputs) {
      if (input >= 0 && producer(input) != kNone) precede(producer(input), id);
    }
    if (!ops_[index(id)].has_effect) continue;  // those are never new: their ids are in the file's order
    if (last_effect != kNone) precede(last_effect, id);
    last_effect = id;
  }
  for (OpId id = 0; id < op_slots(); ++id) {
    if (is_alive(id) && missing[index(id)] == 0) ready.emplace(ops_[index(id)].position, id);
  }
  std::vector<OpId> result;
  while (!ready.empty()) {
    const OpId id = ready.begin()->second;
    ready.erase(ready.begin());
    result.push_back(id);
    for (const OpId follower : followers[index(id)]) {
      if (--missing[index(follower)] == 0) ready.emplace(ops_[index(follower)].position, follower);
    }
  }
  if (result.size() != alive) return internal_error("operators depend on each other in a circle");
  return result;
}

// New tensors are named after those they stand for. A name that is taken gets a number.
void Graph::name_new_tensors() {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> numbers;
  const auto is_used = [this](std::size_t i) { return producers_[i] != kNone || !users_[i].empty() || is_input_[i]; };
  for (std::size_t i = 0; i < given_tensors_; ++i) {
    if (is_used(i)) taken.insert(graph().tensors[i].name);
  }
  for (std::size_t i = given_tensors_; i < graph().tensors.size(); ++i) {
    if (!is_used(i)) continue;
    std::string& name = graph().tensors[i].name;
    const std::string base = name;
    while (!taken.insert(name).second) name = fmt::format("{}_{}", base, ++numbers[base]);
  }
}

Status Graph::finish() {
  sweep();
  REEF_ASSIGN_OR_RETURN(const std::vector<OpId> sequence, order());
  name_new_tensors();
  std::vector<ir::Operator> operators;
  operators.reserve(sequence.size());
  for (const OpId id : sequence) operators.push_back(std::move(ops_[index(id)].op));
  graph().operators = std::move(operators);
  return ok_status();
}

}  // namespace reef::simplify

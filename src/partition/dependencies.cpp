// SPDX-License-Identifier: Apache-2.0
#include "partition/dependencies.h"

#include <algorithm>

namespace reef::partition {

Dependencies::Dependencies(const ir::Model& model)
    : graph_(&model.subgraphs[0]),
      predecessors_(graph_->operators.size()),
      successors_(graph_->operators.size()),
      readers_(graph_->tensors.size()),
      producer_(graph_->tensors.size(), -1),
      is_output_(graph_->tensors.size()),
      is_constant_(graph_->tensors.size()) {
  for (std::size_t i = 0; i < graph_->tensors.size(); ++i) {
    const ir::Tensor& tensor = graph_->tensors[i];
    const ir::Buffer& buffer = model.buffers[index(tensor.buffer)];
    is_constant_[i] = !buffer.data.empty() || buffer.is_empty_constant || tensor.external_buffer != 0;
  }
  for (const std::int32_t tensor : graph_->outputs) {
    if (tensor >= 0) is_output_[index(tensor)] = true;
  }
  for (std::int32_t op = 0; op < op_count(); ++op) {
    const ir::Operator& source = graph_->operators[index(op)];
    for (const std::int32_t tensor : source.inputs) {
      if (tensor < 0 || producer_[index(tensor)] < 0) continue;
      readers_[index(tensor)].push_back(op);
      predecessors_[index(op)].push_back(producer_[index(tensor)]);
    }
    auto& mine = predecessors_[index(op)];
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
    for (const std::int32_t earlier : mine) successors_[index(earlier)].push_back(op);
    for (const std::int32_t tensor : source.outputs) {
      if (tensor >= 0) producer_[index(tensor)] = op;
    }
  }
}

Dependencies::Border Dependencies::border(std::span<const std::int32_t> ops) const {
  std::vector<bool> inside(graph_->operators.size()), listed(graph_->tensors.size());
  for (const std::int32_t op : ops) inside[index(op)] = true;
  Border border;
  for (const std::int32_t op : ops) {
    for (const std::int32_t tensor : graph_->operators[index(op)].inputs) {
      if (!is_computed(tensor) || listed[index(tensor)]) continue;
      const std::int32_t from = producer(tensor);
      if (from >= 0 && inside[index(from)]) continue;
      listed[index(tensor)] = true;
      border.inputs.push_back(tensor);
    }
  }
  for (const std::int32_t op : ops) {
    for (const std::int32_t tensor : graph_->operators[index(op)].outputs) {
      if (tensor < 0) continue;
      const auto& readers = readers_[index(tensor)];
      const bool leaves = is_output_[index(tensor)] || std::any_of(readers.begin(), readers.end(),
                                                                   [&](std::int32_t r) { return !inside[index(r)]; });
      if (leaves) border.outputs.push_back(tensor);
    }
  }
  return border;
}

}  // namespace reef::partition

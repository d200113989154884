// SPDX-License-Identifier: Apache-2.0
// extract_model: some operators of a model as a model of their own.
#include <algorithm>

#include "partition/segments.h"

namespace reef::partition {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// Old index -> new index of what is kept, in the old order.
std::vector<std::int32_t> renumber(const std::vector<bool>& kept) {
  std::vector<std::int32_t> result(kept.size(), -1);
  std::int32_t next = 0;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) result[i] = next++;
  }
  return result;
}

std::vector<std::int32_t> mapped(const std::vector<std::int32_t>& indices, const std::vector<std::int32_t>& map) {
  std::vector<std::int32_t> result;
  for (const std::int32_t index : indices) result.push_back(index < 0 ? index : map[at(index)]);
  return result;
}

std::vector<bool> needed_tensors(const ir::Subgraph& graph, const ir::Subgraph& part) {
  std::vector<bool> needed(graph.tensors.size());
  const auto need = [&](const std::vector<std::int32_t>& tensors) {
    for (const std::int32_t tensor : tensors) {
      if (tensor >= 0) needed[at(tensor)] = true;
    }
  };
  need(part.inputs);
  need(part.outputs);
  for (const ir::Operator& op : part.operators) {
    need(op.inputs);
    need(op.outputs);
    need(op.intermediates);
  }
  // Scales that are tensors themselves.
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!needed[i]) continue;
    if (const auto* block = std::get_if<ir::BlockwiseQuantization>(&graph.tensors[i].quantization.details)) {
      need({block->scales, block->zero_points});
    } else if (const auto* axes = std::get_if<ir::MultiAxisQuantization>(&graph.tensors[i].quantization.details)) {
      need({axes->scales, axes->zero_points});
    }
  }
  return needed;
}

void renumber_tensors(const ir::Subgraph& graph, ir::Subgraph& part) {
  const std::vector<bool> needed = needed_tensors(graph, part);
  const std::vector<std::int32_t> map = renumber(needed);
  for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
    if (!needed[i]) continue;
    ir::Tensor tensor = graph.tensors[i];
    const auto move = [&](auto& details) {
      details.scales = mapped({details.scales}, map)[0];
      details.zero_points = mapped({details.zero_points}, map)[0];
    };
    if (auto* block = std::get_if<ir::BlockwiseQuantization>(&tensor.quantization.details)) move(*block);
    if (auto* axes = std::get_if<ir::MultiAxisQuantization>(&tensor.quantization.details)) move(*axes);
    part.tensors.push_back(std::move(tensor));
  }
  part.inputs = mapped(part.inputs, map);
  part.outputs = mapped(part.outputs, map);
  for (ir::Operator& op : part.operators) {
    op.inputs = mapped(op.inputs, map);
    op.outputs = mapped(op.outputs, map);
    op.intermediates = mapped(op.intermediates, map);
  }
}

// Buffers that nothing names any more.
void drop_unused_buffers(ir::Model& model) {
  std::vector<bool> used(model.buffers.size());
  used[0] = true;
  for (const ir::Subgraph& graph : model.subgraphs) {
    for (const ir::Tensor& tensor : graph.tensors) used[at(tensor.buffer)] = true;
  }
  for (const ir::Metadata& metadata : model.metadata) used[at(metadata.buffer)] = true;
  for (const std::int32_t buffer : model.metadata_buffers) used[at(buffer)] = true;
  const std::vector<std::int32_t> map = renumber(used);
  for (ir::Subgraph& graph : model.subgraphs) {
    for (ir::Tensor& tensor : graph.tensors) tensor.buffer = map[at(tensor.buffer)];
  }
  for (ir::Metadata& metadata : model.metadata) metadata.buffer = map[at(metadata.buffer)];
  model.metadata_buffers = mapped(model.metadata_buffers, map);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i]) model.buffers[kept++] = std::move(model.buffers[i]);
  }
  model.buffers.resize(kept);
}

}  // namespace

ir::Model extract_model(const ir::Model& model, const std::vector<std::int32_t>& ops,
                        const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs) {
  ir::Model result = model;
  const ir::Subgraph& graph = model.subgraphs[0];
  ir::Subgraph part;
  part.name = graph.name;
  part.inputs = inputs;
  part.outputs = outputs;
  for (const std::int32_t op : ops) part.operators.push_back(graph.operators[at(op)]);
  // A variable is not an input: it keeps its value inside of the segment that uses it.
  std::erase_if(part.inputs, [&](std::int32_t tensor) { return graph.tensors[at(tensor)].is_variable; });
  renumber_tensors(graph, part);
  result.subgraphs[0] = std::move(part);
  // They name inputs and outputs that this part does not have.
  std::erase_if(result.signatures, [](const ir::Signature& signature) { return signature.subgraph == 0; });
  drop_unused_buffers(result);
  return result;
}

}  // namespace reef::partition

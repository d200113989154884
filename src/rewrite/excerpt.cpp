// SPDX-License-Identifier: Apache-2.0
#include "rewrite/excerpt.h"

#include <algorithm>
#include <map>
#include <set>

namespace reef::rewrite {
namespace {

std::size_t at(std::int32_t index) { return static_cast<std::size_t>(index); }

}  // namespace

ir::Model excerpt(const ir::Model& model, std::span<const ir::Operator> operators,
                  std::span<const std::int32_t> outputs) {
  ir::Model result;
  result.buffers.resize(1);
  ir::Subgraph& graph = result.subgraphs.emplace_back();
  std::map<std::int32_t, std::int32_t> copies;
  std::set<std::int32_t> computed;
  const auto copy = [&](std::int32_t tensor) {
    if (tensor < 0) return tensor;
    const auto [found, is_new] = copies.try_emplace(tensor, static_cast<std::int32_t>(graph.tensors.size()));
    if (!is_new) return found->second;
    ir::Tensor& made = graph.tensors.emplace_back(model.subgraphs[0].tensors[at(tensor)]);
    if (made.buffer == 0) return found->second;
    result.buffers.push_back(model.buffers[at(made.buffer)]);  // shares the data
    made.buffer = static_cast<std::int32_t>(result.buffers.size()) - 1;
    return found->second;
  };
  for (const ir::Operator& each : operators) {
    ir::Operator& op = graph.operators.emplace_back(each);
    std::transform(op.inputs.begin(), op.inputs.end(), op.inputs.begin(), copy);
    for (const std::int32_t input : op.inputs) {
      if (input < 0 || computed.contains(input)) continue;
      const ir::Buffer& buffer = result.buffers[at(graph.tensors[at(input)].buffer)];
      if (buffer.data.empty() && !buffer.is_empty_constant && computed.insert(input).second) {
        graph.inputs.push_back(input);
      }
    }
    std::transform(op.outputs.begin(), op.outputs.end(), op.outputs.begin(), copy);
    computed.insert(op.outputs.begin(), op.outputs.end());
    std::transform(op.intermediates.begin(), op.intermediates.end(), op.intermediates.begin(), copy);
  }
  for (const std::int32_t tensor : outputs) graph.outputs.push_back(copy(tensor));
  return result;
}

}  // namespace reef::rewrite

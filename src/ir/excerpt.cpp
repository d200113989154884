// SPDX-License-Identifier: Apache-2.0
#include "ir/excerpt.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/at.h"

namespace reef::ir {

Model excerpt(const Model& model, std::span<const Operator> operators, std::span<const std::int32_t> outputs,
              std::size_t subgraph, std::span<const std::int32_t> given) {
  Model result;
  result.buffers.resize(1);
  Subgraph& graph = result.subgraphs.emplace_back();
  std::set<std::int32_t> results;  // of the operators, as tensors of `model`
  for (const Operator& each : operators) results.insert(each.outputs.begin(), each.outputs.end());
  std::map<std::int32_t, std::int32_t> copies;
  std::set<std::int32_t> computed;
  const auto copy = [&](std::int32_t tensor) {
    if (tensor < 0) return tensor;
    const auto [found, is_new] = copies.try_emplace(tensor, static_cast<std::int32_t>(graph.tensors.size()));
    if (!is_new) return found->second;
    Tensor& made = graph.tensors.emplace_back(model.subgraphs[subgraph].tensors[at(tensor)]);
    if (results.contains(tensor)) made.buffer = 0;
    if (made.buffer == 0) return found->second;
    result.buffers.push_back(model.buffers[at(made.buffer)]);  // shares the data
    made.buffer = static_cast<std::int32_t>(result.buffers.size()) - 1;
    return found->second;
  };
  for (const std::int32_t tensor : given) {
    graph.inputs.push_back(copy(tensor));
    computed.insert(graph.inputs.back());
  }
  for (const Operator& each : operators) {
    Operator& op = graph.operators.emplace_back(each);
    std::transform(op.inputs.begin(), op.inputs.end(), op.inputs.begin(), copy);
    for (const std::int32_t input : op.inputs) {
      if (input < 0 || computed.contains(input)) continue;
      const Buffer& buffer = result.buffers[at(graph.tensors[at(input)].buffer)];
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

}  // namespace reef::ir

// SPDX-License-Identifier: Apache-2.0
// Equal constants are stored once, and what is computed twice from the same operands is computed once. Exact.
#include <map>
#include <unordered_map>

#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kComparedBytes = 4096;  // larger constants are the same only if they share a buffer

void append(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// Equal keys, equal constants; quantization is compared apart.
std::string key_of(const Graph& graph, const ir::Tensor& tensor) {
  std::string key;
  append(key, static_cast<std::int64_t>(tensor.type));
  for (const std::int32_t dim : tensor.shape) append(key, dim);
  append(key, -1);
  const Bytes& data = ir::constant_data(graph.model(), tensor);
  if (data.size() > kComparedBytes) {
    append(key, tensor.buffer);
  } else {
    key.append(reinterpret_cast<const char*>(data.data()), data.size());
  }
  return key;
}

int merge_constants(Graph& graph) {
  std::unordered_map<std::string, TensorId> seen;
  int merged = 0;
  for (OpId id = 0; id < graph.op_slots(); ++id) {
    if (!graph.is_sound(id)) continue;
    std::vector<TensorId> inputs = graph.op(id).inputs;
    bool changed = false;
    for (TensorId& input : inputs) {
      if (input < 0 || !graph.is_constant(input)) continue;
      const TensorId first = seen.emplace(key_of(graph, graph.tensor(input)), input).first->second;
      if (first == input || !(graph.tensor(first).quantization == graph.tensor(input).quantization)) continue;
      input = first;
      changed = true;
    }
    if (!changed) continue;
    graph.set_inputs(id, std::move(inputs));
    ++merged;
  }
  return merged;
}

bool same_results(const Graph& graph, OpId a, OpId b) {
  const ir::Operator& first = graph.op(a);
  const ir::Operator& second = graph.op(b);
  if (!(first.attributes == second.attributes) || first.outputs.size() != second.outputs.size()) return false;
  for (std::size_t i = 0; i < first.outputs.size(); ++i) {
    const ir::Tensor& x = graph.tensor(first.outputs[i]);
    const ir::Tensor& y = graph.tensor(second.outputs[i]);
    if (x.type != y.type || x.shape != y.shape || !(x.quantization == y.quantization)) return false;
  }
  return true;
}

int merge_operators(Graph& graph) {
  std::multimap<std::pair<std::string, std::vector<TensorId>>, OpId> seen;
  int merged = 0;
  for (OpId id = 0; id < graph.op_slots(); ++id) {
    if (!graph.is_sound(id)) continue;
    const std::pair key(graph.type(id), graph.op(id).inputs);
    bool is_new = true;
    const auto [begin, end] = seen.equal_range(key);
    for (auto it = begin; it != end && is_new; ++it) {
      if (!graph.is_sound(it->second) || graph.op(it->second).inputs != key.second) continue;
      if (!same_results(graph, it->second, id)) continue;
      is_new = false;
      const std::vector<TensorId> from = graph.op(id).outputs;
      for (std::size_t i = 0; i < from.size(); ++i) {
        if (graph.replace(from[i], graph.op(it->second).outputs[i]) != kNone) ++merged;
      }
    }
    if (is_new) seen.emplace(key, id);
  }
  return merged;
}

int common_subexpressions_whole(Graph& graph) {
  const int constants = merge_constants(graph);
  const int operators = merge_operators(graph);
  return constants + operators;
}

}  // namespace

constinit const Pass common_subexpressions_float_pass = {
    .name = "common-subexpressions",
    .summary = "Equal constants are stored once, what is computed twice is computed once.",
    .whole = common_subexpressions_whole};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor_names.h"

#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/at.h"

namespace reef::ir {
namespace {

// Tensors with values of their own at run time: inputs, outputs, then what operators compute, each once.
std::vector<std::int32_t> named_tensors(const Subgraph& graph) {
  std::vector<std::int32_t> result;
  std::vector<bool> is_seen(graph.tensors.size());
  const auto add = [&](const std::vector<std::int32_t>& tensors) {
    for (const std::int32_t t : tensors) {
      if (t < 0 || is_seen[at(t)]) continue;
      is_seen[at(t)] = true;
      result.push_back(t);
    }
  };
  add(graph.inputs);
  add(graph.outputs);
  for (const Operator& op : graph.operators) add(op.outputs);
  return result;
}

}  // namespace

bool has_equal_names(const Model& model) {
  for (const Subgraph& graph : model.subgraphs) {
    std::set<std::string_view> names;
    for (const std::int32_t t : named_tensors(graph)) {
      if (!names.insert(graph.tensors[at(t)].name).second) return true;
    }
  }
  return false;
}

void name_apart(Model& model) {
  for (Subgraph& graph : model.subgraphs) {
    std::set<std::string> taken, used;
    const std::vector<std::int32_t> tensors = named_tensors(graph);
    for (const std::int32_t t : tensors) taken.insert(graph.tensors[at(t)].name);
    for (const std::int32_t t : tensors) {
      std::string& name = graph.tensors[at(t)].name;
      if (used.insert(name).second) continue;
      std::string other;
      for (int number = 2; other.empty() || taken.contains(other); ++number) other = fmt::format("{}#{}", name, number);
      taken.insert(other);
      used.insert(other);
      name = std::move(other);
    }
  }
}

std::string_view name_before_apart(std::string_view name) {
  const std::size_t mark = name.rfind('#');
  const bool is_numbered =
      mark != name.npos && mark + 1 < name.size() && name.find_first_not_of("0123456789", mark + 1) == name.npos;
  return is_numbered ? name.substr(0, mark) : name;
}

}  // namespace reef::ir

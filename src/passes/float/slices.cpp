// SPDX-License-Identifier: Apache-2.0
// SLICEs that cut a tensor into equal pieces along one axis, each piece once, become one SPLIT: the gates of a
// recurrent cell, the halves of a channel shuffle. Exact.
#include <algorithm>
#include <map>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// The piece that one operator takes out of its operand: [begin, begin + size) of one axis and all of the others.
struct Cut {
  int axis = 0;
  std::int32_t begin = 0, size = 0;
};

std::optional<Cut> cut_of(const Graph& graph, OpId id) {
  const auto begins = slice_begins(graph, id);
  if (!begins) return std::nullopt;
  const ir::Shape& from = graph.shape(graph.op(id).inputs[0]);
  const ir::Shape& to = graph.shape(graph.op(id).outputs[0]);
  std::optional<Cut> cut;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const std::int64_t begin = (*begins)[at(axis)];
    if (begin == 0 && to[axis] == from[axis]) continue;
    if (cut) return std::nullopt;
    cut = Cut{axis, static_cast<std::int32_t>(begin), to[axis]};
  }
  return cut;
}

bool slices_at(Graph& graph, OpId id) {
  const auto first = cut_of(graph, id);
  if (!first || first->begin != 0 || first->axis == 0) return false;
  const TensorId x = graph.op(id).inputs[0];
  if (graph.tensor(x).quantization.is_per_axis()) return false;
  const std::int32_t size = graph.shape(x)[first->axis];
  if (first->size < 1 || size % first->size != 0) return false;
  std::map<std::int32_t, OpId> pieces;  // by beginning
  for (const OpId user : graph.users(x)) {
    const auto cut = cut_of(graph, user);
    if (!cut || cut->axis != first->axis || cut->size != first->size || cut->begin % cut->size != 0) continue;
    if (!same_numbers(graph, x, graph.op(user).outputs[0])) continue;
    pieces.emplace(cut->begin, user);
  }
  const std::int32_t count = size / first->size;
  if (count < 2 || static_cast<std::int32_t>(pieces.size()) != count) return false;
  std::vector<TensorId> outputs;
  for (const auto& [begin, op] : pieces) outputs.push_back(graph.op(op).outputs[0]);
  for (const auto& [begin, op] : pieces) graph.remove(op);
  ir::Attributes attributes;
  attributes.set("num_splits", std::int64_t{count});
  graph.add_op(id, Op::SPLIT, "SplitOptions", std::move(attributes), {graph.add_ints({first->axis}, {}), x}, outputs);
  return true;
}

}  // namespace

constinit const Pass slices_float_pass = {
    .name = "slices",
    .summary =
        "SLICEs that cut a tensor into equal pieces along an axis, each once, become one SPLIT (not along the "
        "outermost axis, which the Edge TPU does not split).",
    .at = slices_at};

}  // namespace reef::passes

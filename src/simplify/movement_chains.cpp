// SPDX-License-Identifier: Apache-2.0
// RESHAPE after RESHAPE, TRANSPOSE after TRANSPOSE: one does for both. A TRANSPOSE that keeps the elements in order is
// a RESHAPE. A TRANSPOSE between two RESHAPEs gets as few axes as it needs: axes that stay side by side are one.
#include <algorithm>

#include "simplify/layout_rules.h"
#include "simplify/pass.h"
#include "simplify/patterns.h"

namespace reef::simplify {
namespace {

void become_reshape(Graph& graph, OpId op, TensorId x) {
  const ir::Shape shape = graph.shape(graph.op(op).outputs[0]);
  ir::Attributes attributes;
  attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
  graph.become(op, "RESHAPE", "ReshapeOptions", std::move(attributes),
               {x, graph.add_ints({shape.begin(), shape.end()})});
}

void become_transpose(Graph& graph, OpId op, TensorId x, const Layout& layout) {
  graph.become(op, "TRANSPOSE", "TransposeOptions", {}, {x, graph.add_ints({layout.begin(), layout.end()})});
}

bool is_per_axis(const Graph& graph, TensorId tensor) { return graph.tensor(tensor).quantization.is_per_axis(); }

// Groups of axes of the operand that the layout keeps side by side and in order, in the layout's order; axes of size 1
// are in none.
std::vector<std::vector<int>> groups_of(const Layout& layout, const ir::Shape& shape) {
  std::vector<std::vector<int>> groups;
  for (const int axis : layout) {
    if (shape[axis] == 1) continue;
    const bool follows = !groups.empty() && [&] {
      for (int between = groups.back().back() + 1; between < axis; ++between) {
        if (shape[between] != 1) return false;
      }
      return groups.back().back() < axis;
    }();
    if (follows) {
      groups.back().push_back(axis);
    } else {
      groups.push_back({axis});
    }
  }
  return groups;
}

bool merge_axes(Graph& graph, OpId op) {
  const TensorId x = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
  const OpId before = made_by(graph, x, "RESHAPE"), after = graph.only_user(y);
  if (before == kNone || !graph.has_one_user(x) || !graph.is(after, "RESHAPE") || !graph.is_sound(after)) return false;
  if (is_per_axis(graph, x) || is_per_axis(graph, y)) return false;
  const ir::Shape shape = graph.shape(x);
  const std::vector<std::vector<int>> groups = groups_of(*conversion_of(graph, op), shape);
  if (static_cast<int>(groups.size()) >= shape.rank()) return false;
  std::vector<std::size_t> sorted(groups.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) { return groups[a][0] < groups[b][0]; });
  ir::Shape merged, result;
  Layout layout(groups.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    std::int32_t size = 1;
    for (const int axis : groups[sorted[i]]) size *= shape[axis];
    merged.push_back(size);
    layout[sorted[i]] = static_cast<int>(i);
  }
  result = laid_out(merged, layout);
  const TensorId source = graph.reshape(op, graph.op(before).inputs[0], merged);
  const TensorId turned = graph.add_like(y, result);
  graph.add_op(op, "TRANSPOSE", "TransposeOptions", {}, {source, graph.add_ints({layout.begin(), layout.end()})},
               {turned});
  graph.set_input(after, 0, turned);
  return true;
}

bool at(Graph& graph, OpId op) {
  const bool is_reshape = graph.is(op, "RESHAPE"), is_transpose = graph.is(op, "TRANSPOSE");
  if (!is_reshape && !is_transpose) return false;
  const TensorId x = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
  if (is_reshape) {
    const OpId before = made_by(graph, x, "RESHAPE");
    if (before == kNone || is_per_axis(graph, x)) return false;
    become_reshape(graph, op, graph.op(before).inputs[0]);
    return true;
  }
  const auto layout = conversion_of(graph, op);
  if (!layout) return false;
  if (!moves_elements(*layout, graph.shape(x)) && !is_per_axis(graph, y)) {
    become_reshape(graph, op, x);
    return true;
  }
  if (const OpId before = made_by(graph, x, "TRANSPOSE"); before != kNone) {
    const auto first = conversion_of(graph, before);
    if (!first) return false;
    become_transpose(graph, op, graph.op(before).inputs[0], compose(*first, *layout));
    return true;
  }
  return merge_axes(graph, op);
}

}  // namespace

extern const Pass movement_chains_pass;
constinit const Pass movement_chains_pass = {
    .name = "movement-chains",
    .summary = "Chains of RESHAPE and of TRANSPOSE become one, with as few axes as possible.",
    .at = at};

}  // namespace reef::simplify

// SPDX-License-Identifier: Apache-2.0
// A TRANSPOSE between two RESHAPEs gets as few axes as it needs: axes that stay side by side are one. Exact.
//
// The last pass: the axes that it merges are those along which the others find their way.
#include <algorithm>

#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

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

bool fewer_axes_at(Graph& graph, OpId op) {
  if (!graph.is(op, Op::TRANSPOSE) || !conversion_of(graph, op)) return false;
  const TensorId x = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
  const OpId before = made_by(graph, x, Op::RESHAPE), after = graph.only_user(y);
  if (before == kNone || !graph.has_one_user(x) || !graph.is(after, Op::RESHAPE) || !graph.is_sound(after))
    return false;
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
  graph.add_op(op, Op::TRANSPOSE, "TransposeOptions", {}, {source, graph.add_ints({layout.begin(), layout.end()})},
               {turned});
  graph.set_input(after, 0, turned);
  return true;
}

}  // namespace

constinit const Pass fewer_axes_float_pass = {
    .name = "fewer-axes",
    .summary = "A TRANSPOSE between two RESHAPEs gets as few axes as it needs.",
    .is_last = true,
    .at = fewer_axes_at};

}  // namespace reef::passes

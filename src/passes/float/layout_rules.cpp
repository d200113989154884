// SPDX-License-Identifier: Apache-2.0
// Elementwise operators, with broadcasting; and which rule is whose.
#include "passes/float/layout_rules.h"

#include <algorithm>

#include "ops/registry.h"

namespace reef::passes {
namespace {

// The result's layout as an operand of lower rank has it: its axes are the last ones of the result. Axes of size 1 in
// front are left out, as broadcasting adds them.
Layout operand_layout(const Layout& result, int result_rank, int rank) {
  Layout layout;
  for (const int axis : result) {
    const int own = axis < 0 ? kNewAxis : std::max(axis - (result_rank - rank), kNewAxis);
    if (own == kNewAxis && layout.empty() && rank < result_rank) continue;
    layout.push_back(own);
  }
  return layout;
}

// The result's layout if an operand has this one.
Layout result_layout(const Layout& operand, int rank, int result_rank) {
  Layout layout = identity_layout(result_rank - rank);
  for (const int axis : operand) layout.push_back(axis < 0 ? kNewAxis : axis + result_rank - rank);
  return layout;
}

bool complete_elementwise(const Graph& graph, OpId id, Relayout& wanted) {
  const ir::Operator& op = graph.op(id);
  const ir::Shape& result = graph.shape(op.outputs[0]);
  for (const TensorId input : op.inputs) {
    if (graph.shape(input).rank() > result.rank()) return false;
  }
  if (op.type == Op::SELECT && graph.shape(op.inputs[0]) != result) return false;
  if (!wanted.outputs[0]) {
    for (std::size_t i = 0; i < op.inputs.size() && !wanted.outputs[0]; ++i) {
      if (wanted.inputs[i]) {
        wanted.outputs[0] = result_layout(*wanted.inputs[i], graph.shape(op.inputs[i]).rank(), result.rank());
      }
    }
  }
  for (std::size_t i = 0; i < op.inputs.size(); ++i) {
    const ir::Shape& shape = graph.shape(op.inputs[i]);
    Layout layout = operand_layout(*wanted.outputs[0], result.rank(), shape.rank());
    if (!fits_shape(layout, shape)) return false;
    if (wanted.inputs[i] && !is_same(*wanted.inputs[i], layout, shape)) return false;
    wanted.inputs[i] = std::move(layout);
  }
  return true;
}

void apply_nothing(Graph&, OpId, const Relayout&) {}

}  // namespace

constinit const LayoutRule kElementwiseRule = {complete_elementwise, apply_nothing};

const LayoutRule* find_layout_rule(const Graph& graph, OpId id) {
  const std::string& type = graph.type(id);
  if (ops::is_elementwise(graph.op(id))) {
    return graph.op(id).outputs.size() == 1 ? &kElementwiseRule : nullptr;
  }
  if (type == Op::RESHAPE) return &kReshapeRule;
  if (const LayoutRule* rule = find_axis_rule(type)) return rule;
  if (const LayoutRule* rule = find_extent_rule(type)) return rule;
  return find_last_axis_rule(type);
}

bool same_layout(Relayout& wanted, const Graph& graph, OpId id, std::span<const std::size_t> data) {
  const ir::Operator& op = graph.op(id);
  std::optional<Layout> layout;
  int rank = -1;
  bool agree = true;
  const auto look = [&](const std::optional<Layout>& known, TensorId tensor) {
    const ir::Shape& shape = graph.shape(tensor);
    if (rank < 0) rank = shape.rank();
    agree = agree && shape.rank() == rank;
    if (!known || !agree) return;
    if (layout) agree = fits_shape(*layout, shape) && is_same(*layout, *known, shape);
    if (!layout) layout = known;
  };
  for (const std::size_t i : data) {
    if (i >= op.inputs.size()) return false;
    look(wanted.inputs[i], op.inputs[i]);
  }
  for (std::size_t i = 0; i < wanted.inputs.size(); ++i) {
    if (wanted.inputs[i] && std::find(data.begin(), data.end(), i) == data.end()) return false;
  }
  for (std::size_t i = 0; i < op.outputs.size(); ++i) look(wanted.outputs[i], op.outputs[i]);
  if (!agree || !layout) return false;
  for (const std::size_t i : data) wanted.inputs[i] = layout;
  for (std::optional<Layout>& each : wanted.outputs) each = layout;
  return true;
}

bool only_first_given(const Relayout& wanted) {
  return std::none_of(wanted.inputs.begin() + 1, wanted.inputs.end(),
                      [](const auto& each) { return each.has_value(); });
}

int normal_axis(std::int64_t axis, int rank) {
  if (axis < 0) axis += rank;
  return axis >= 0 && axis < rank ? static_cast<int>(axis) : -1;
}

std::optional<Layout> conversion_of(const Graph& graph, OpId id) {
  if (!graph.is_sound(id)) return std::nullopt;
  const ir::Operator& op = graph.op(id);
  const ir::Shape& from = graph.shape(op.inputs[0]);
  const ir::Shape& to = graph.shape(op.outputs[0]);
  if (op.type == Op::TRANSPOSE) {
    const auto order = graph.ints(op.inputs[1]);
    if (!order || static_cast<int>(order->size()) != from.rank()) return std::nullopt;
    Layout layout;
    for (const std::int64_t axis : *order) layout.push_back(normal_axis(axis, from.rank()));
    Layout sorted = layout;
    std::sort(sorted.begin(), sorted.end());
    if (sorted != identity_layout(from.rank()) || laid_out(from, layout) != to) return std::nullopt;
    return layout;
  }
  if (op.type != Op::RESHAPE || from.elements() != to.elements()) return std::nullopt;
  // Axes larger than 1 in order; those of size 1 are matched where they stand side by side with the same neighbours.
  Layout layout;
  int at = 0;
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] == 1) {
      const bool matches = at < from.rank() && from[at] == 1;
      layout.push_back(matches ? at++ : kNewAxis);
      continue;
    }
    while (at < from.rank() && from[at] == 1) ++at;
    if (at == from.rank() || from[at] != to[i]) return std::nullopt;
    layout.push_back(at++);
  }
  while (at < from.rank() && from[at] == 1) ++at;
  return at == from.rank() ? std::optional(layout) : std::nullopt;
}

}  // namespace reef::passes

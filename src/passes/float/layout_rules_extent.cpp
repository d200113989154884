// SPDX-License-Identifier: Apache-2.0
// Operators with a value for every axis (begins, sizes, paddings, multiples) or a list of axes (reductions): the values
// come in the layout's order, and new axes get what changes nothing.
#include <algorithm>

#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"

namespace reef::passes {
namespace {

constexpr std::size_t kExtentData[] = {0};

// `width` values per axis of a constant operand, in another order.
bool has_extents(const Graph& graph, OpId op, std::size_t input, std::size_t width) {
  const auto values = graph.ints(graph.op(op).inputs[input]);
  const auto rank = static_cast<std::size_t>(graph.shape(graph.op(op).inputs[0]).rank());
  return values && values->size() == width * rank;
}
void reorder_extents(Graph& graph, OpId op, std::size_t input, std::size_t width, const Layout& layout,
                     std::int32_t of_new_axis) {
  const std::vector<std::int64_t> values = *graph.ints(graph.op(op).inputs[input]);
  std::vector<std::int32_t> result;
  for (const int axis : layout) {
    for (std::size_t k = 0; k < width; ++k) {
      const std::int64_t value = axis < 0 ? of_new_axis : values[static_cast<std::size_t>(axis) * width + k];
      result.push_back(static_cast<std::int32_t>(value));
    }
  }
  ir::Shape shape = {static_cast<std::int32_t>(layout.size())};
  if (width > 1) shape.push_back(static_cast<std::int32_t>(width));
  graph.set_input(op, input, graph.add_ints(std::move(result), std::move(shape)));
}

// ---- PAD, PADV2, MIRROR_PAD ----
bool complete_pad(const Graph& graph, OpId op, Relayout& wanted) {
  return has_extents(graph, op, 1, 2) && same_layout(wanted, graph, op, kExtentData);
}
void apply_pad(Graph& graph, OpId op, const Relayout& layouts) {
  reorder_extents(graph, op, 1, 2, *layouts.inputs[0], 0);
}

// ---- SLICE ----
bool complete_slice(const Graph& graph, OpId op, Relayout& wanted) {
  return has_extents(graph, op, 1, 1) && has_extents(graph, op, 2, 1) && same_layout(wanted, graph, op, kExtentData);
}
void apply_slice(Graph& graph, OpId op, const Relayout& layouts) {
  reorder_extents(graph, op, 1, 1, *layouts.inputs[0], 0);
  reorder_extents(graph, op, 2, 1, *layouts.inputs[0], 1);
}

// ---- TILE ----
bool complete_tile(const Graph& graph, OpId op, Relayout& wanted) {
  return has_extents(graph, op, 1, 1) && same_layout(wanted, graph, op, kExtentData);
}
void apply_tile(Graph& graph, OpId op, const Relayout& layouts) {
  reorder_extents(graph, op, 1, 1, *layouts.inputs[0], 1);
}

// ---- STRIDED_SLICE, with or without axes that are dropped ----
Layout after_drop(const Layout& layout, std::int64_t dropped, int rank) {
  std::vector<int> renumbered;
  for (int axis = 0, next = 0; axis < rank; ++axis) renumbered.push_back((dropped >> axis) & 1 ? -2 : next++);
  Layout result;
  for (const int axis : layout) {
    const int own = axis < 0 ? kNewAxis : renumbered[at(axis)];
    if (own != -2) result.push_back(own);
  }
  return result;
}
bool complete_strided_slice(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  const ir::Attributes& attributes = it.attributes;
  if (attributes.get_int("ellipsis_mask") != 0 || attributes.get_int("new_axis_mask") != 0) return false;
  if (attributes.get_bool("offset")) return false;
  for (std::size_t input = 1; input <= 3; ++input) {
    if (!has_extents(graph, op, input, 1)) return false;
  }
  const std::int64_t dropped = attributes.get_int("shrink_axis_mask");
  if (dropped == 0) return same_layout(wanted, graph, op, kExtentData);
  if (!wanted.inputs[0] || !only_first_given(wanted)) return false;
  const int rank = graph.shape(it.inputs[0]).rank();
  for (int axis = 0; axis < rank; ++axis) {
    if (((dropped >> axis) & 1) != 0 && position_of(axis, *wanted.inputs[0]) < 0) return false;
  }
  Layout result = after_drop(*wanted.inputs[0], dropped, rank);
  if (!fits_shape(result, graph.shape(it.outputs[0]))) return false;
  if (wanted.outputs[0] && !is_same(*wanted.outputs[0], result, graph.shape(it.outputs[0]))) return false;
  wanted.outputs[0] = std::move(result);
  return true;
}
void apply_strided_slice(Graph& graph, OpId op, const Relayout& layouts) {
  const Layout& layout = *layouts.inputs[0];
  reorder_extents(graph, op, 1, 1, layout, 0);
  reorder_extents(graph, op, 2, 1, layout, 1);
  reorder_extents(graph, op, 3, 1, layout, 1);
  for (const std::string_view name : {"begin_mask", "end_mask", "shrink_axis_mask"}) {
    const std::int64_t mask = graph.op(op).attributes.get_int(name);
    std::int64_t result = 0;
    for (std::size_t i = 0; i < layout.size(); ++i) {
      if (layout[i] >= 0 && ((mask >> layout[i]) & 1) != 0) result |= std::int64_t{1} << i;
    }
    graph.set_attribute(op, name, result);
  }
}

// ---- Reductions ----
bool complete_reduction(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  const auto axes = reduced_axes(graph, op);
  if (!axes) return false;
  if (it.attributes.get_bool("keep_dims")) {
    if (!same_layout(wanted, graph, op, kExtentData)) return false;
    return std::all_of(axes->begin(), axes->end(), [&](int axis) { return position_of(axis, *wanted.inputs[0]) >= 0; });
  }
  if (!wanted.inputs[0] || !only_first_given(wanted)) return false;
  std::int64_t dropped = 0;
  for (const int axis : *axes) {
    if (position_of(axis, *wanted.inputs[0]) < 0) return false;
    dropped |= std::int64_t{1} << axis;
  }
  Layout result = after_drop(*wanted.inputs[0], dropped, graph.shape(it.inputs[0]).rank());
  if (!fits_shape(result, graph.shape(it.outputs[0]))) return false;
  if (wanted.outputs[0] && !is_same(*wanted.outputs[0], result, graph.shape(it.outputs[0]))) return false;
  wanted.outputs[0] = std::move(result);
  return true;
}
void apply_reduction(Graph& graph, OpId op, const Relayout& layouts) {
  std::vector<std::int32_t> axes;
  const std::vector<int> reduced = *reduced_axes(graph, op);
  for (const int axis : reduced) axes.push_back(position_of(axis, *layouts.inputs[0]));
  std::sort(axes.begin(), axes.end());
  graph.set_input(op, 1, graph.add_ints(std::move(axes)));
}

// ---- BROADCAST_TO ----
bool complete_broadcast_to(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  if (graph.shape(it.inputs[0]).rank() != graph.shape(it.outputs[0]).rank()) return false;
  if (!graph.ints(it.inputs[1])) return false;
  return same_layout(wanted, graph, op, kExtentData);
}
void apply_broadcast_to(Graph& graph, OpId op, const Relayout& layouts) {
  const ir::Shape shape = laid_out(graph.shape(graph.op(op).outputs[0]), *layouts.outputs[0]);
  graph.set_input(op, 1, graph.add_ints({shape.begin(), shape.end()}));
}

constexpr LayoutRule kPad = {complete_pad, apply_pad};
constexpr LayoutRule kSlice = {complete_slice, apply_slice};
constexpr LayoutRule kTile = {complete_tile, apply_tile};
constexpr LayoutRule kStridedSlice = {complete_strided_slice, apply_strided_slice};
constexpr LayoutRule kReduction = {complete_reduction, apply_reduction};
constexpr LayoutRule kBroadcastTo = {complete_broadcast_to, apply_broadcast_to};

}  // namespace

const LayoutRule* find_extent_rule(std::string_view type) {
  if (type == Op::PAD || type == Op::PADV2 || type == Op::MIRROR_PAD) return &kPad;
  if (type == Op::SLICE) return &kSlice;
  if (type == Op::TILE) return &kTile;
  if (type == Op::STRIDED_SLICE) return &kStridedSlice;
  if (type == Op::MEAN || type == Op::SUM || type.starts_with("REDUCE_")) return &kReduction;
  if (type == Op::BROADCAST_TO) return &kBroadcastTo;
  return nullptr;
}

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// Operators that name an axis: the axis is where the layout has it.
#include <algorithm>
#include <numeric>

#include "ir/op.h"
#include "passes/float/layout_rules.h"

namespace reef::passes {
namespace {

std::vector<std::size_t> all_inputs(const Graph& graph, OpId op) {
  std::vector<std::size_t> result(graph.op(op).inputs.size());
  std::iota(result.begin(), result.end(), std::size_t{0});
  return result;
}

int attribute_axis(const Graph& graph, OpId op, int rank) {
  return normal_axis(graph.op(op).attributes.get_int("axis"), rank);
}

// The axis from a constant operand with one value; -1: it has none.
int operand_axis(const Graph& graph, OpId op, std::size_t input, int rank) {
  const auto values = graph.ints(graph.op(op).inputs[input]);
  return values && values->size() == 1 ? normal_axis((*values)[0], rank) : -1;
}

void set_operand_axis(Graph& graph, OpId op, std::size_t input, int axis) {
  const ir::Shape shape = graph.shape(graph.op(op).inputs[input]);
  graph.set_input(op, input, graph.add_ints({axis}, shape));
}

// A layout without one axis, the others renumbered.
Layout without_axis(const Layout& layout, int axis) {
  Layout result;
  for (const int each : layout) {
    if (each != axis) result.push_back(each > axis ? each - 1 : each);
  }
  return result;
}

// ---- CONCATENATION ----
bool complete_concatenation(const Graph& graph, OpId op, Relayout& wanted) {
  const int axis = attribute_axis(graph, op, graph.shape(graph.op(op).outputs[0]).rank());
  return axis >= 0 && same_layout(wanted, graph, op, all_inputs(graph, op)) &&
         position_of(axis, *wanted.outputs[0]) >= 0;
}
void apply_concatenation(Graph& graph, OpId op, const Relayout& layouts) {
  const int axis = attribute_axis(graph, op, graph.shape(graph.op(op).outputs[0]).rank());
  graph.set_attribute(op, "axis", std::int64_t{position_of(axis, *layouts.outputs[0])});
}

// ---- SPLIT, SPLIT_V, CUMSUM, REVERSE_V2: the axis is an operand ----
template <std::size_t kData, std::size_t kAxis>
bool complete_operand_axis(const Graph& graph, OpId op, Relayout& wanted) {
  if (graph.op(op).inputs.size() <= std::max(kData, kAxis)) return false;
  const int axis = operand_axis(graph, op, kAxis, graph.shape(graph.op(op).inputs[kData]).rank());
  const std::size_t data[] = {kData};
  return axis >= 0 && same_layout(wanted, graph, op, data) && position_of(axis, *wanted.outputs[0]) >= 0;
}
template <std::size_t kData, std::size_t kAxis>
void apply_operand_axis(Graph& graph, OpId op, const Relayout& layouts) {
  const int axis = operand_axis(graph, op, kAxis, graph.shape(graph.op(op).inputs[kData]).rank());
  set_operand_axis(graph, op, kAxis, position_of(axis, *layouts.inputs[kData]));
}

// ---- ARG_MAX, ARG_MIN: the axis is gone in the result ----
bool complete_arg(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Shape& shape = graph.shape(graph.op(op).inputs[0]);
  const int axis = operand_axis(graph, op, 1, shape.rank());
  if (axis < 0 || !wanted.inputs[0] || !only_first_given(wanted)) return false;
  if (position_of(axis, *wanted.inputs[0]) < 0) return false;
  Layout result = without_axis(*wanted.inputs[0], axis);
  if (!fits_shape(result, graph.shape(graph.op(op).outputs[0]))) return false;
  if (wanted.outputs[0] && !is_same(*wanted.outputs[0], result, graph.shape(graph.op(op).outputs[0]))) return false;
  wanted.outputs[0] = std::move(result);
  return true;
}
void apply_arg(Graph& graph, OpId op, const Relayout& layouts) {
  const int axis = operand_axis(graph, op, 1, graph.shape(graph.op(op).inputs[0]).rank());
  set_operand_axis(graph, op, 1, position_of(axis, *layouts.inputs[0]));
}

// ---- PACK: the result has one axis more ----
bool complete_pack(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  const int rank = graph.shape(it.outputs[0]).rank();
  const int axis = attribute_axis(graph, op, rank);
  if (axis < 0) return false;
  if (!wanted.outputs[0]) {
    for (const std::optional<Layout>& known : wanted.inputs) {
      if (!known || wanted.outputs[0]) continue;
      Layout result;
      for (const int each : *known) result.push_back(each >= axis ? each + 1 : each);
      result.insert(result.begin() + std::min<std::ptrdiff_t>(axis, static_cast<std::ptrdiff_t>(result.size())), axis);
      wanted.outputs[0] = std::move(result);
    }
  }
  if (position_of(axis, *wanted.outputs[0]) < 0) return false;
  const Layout operand = without_axis(*wanted.outputs[0], axis);
  for (std::size_t i = 0; i < it.inputs.size(); ++i) {
    if (!fits_shape(operand, graph.shape(it.inputs[i]))) return false;
    if (wanted.inputs[i] && !is_same(*wanted.inputs[i], operand, graph.shape(it.inputs[i]))) return false;
    wanted.inputs[i] = operand;
  }
  return true;
}
void apply_pack(Graph& graph, OpId op, const Relayout& layouts) {
  const int axis = attribute_axis(graph, op, graph.shape(graph.op(op).outputs[0]).rank());
  graph.set_attribute(op, "axis", std::int64_t{position_of(axis, *layouts.outputs[0])});
}

// ---- UNPACK: the results have one axis less ----
bool complete_unpack(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  const int axis = attribute_axis(graph, op, graph.shape(it.inputs[0]).rank());
  if (axis < 0 || !wanted.inputs[0] || position_of(axis, *wanted.inputs[0]) < 0) return false;
  const Layout result = without_axis(*wanted.inputs[0], axis);
  for (std::size_t i = 0; i < it.outputs.size(); ++i) {
    if (!fits_shape(result, graph.shape(it.outputs[i]))) return false;
    if (wanted.outputs[i] && !is_same(*wanted.outputs[i], result, graph.shape(it.outputs[i]))) return false;
    wanted.outputs[i] = result;
  }
  return true;
}
void apply_unpack(Graph& graph, OpId op, const Relayout& layouts) {
  const int axis = attribute_axis(graph, op, graph.shape(graph.op(op).inputs[0]).rank());
  graph.set_attribute(op, "axis", std::int64_t{position_of(axis, *layouts.inputs[0])});
}

// ---- GATHER by one list of indices, or by a single one, which drops the axis ----
bool complete_gather(const Graph& graph, OpId op, Relayout& wanted) {
  const ir::Operator& it = graph.op(op);
  const ir::Shape& shape = graph.shape(it.inputs[0]);
  const int axis = attribute_axis(graph, op, shape.rank());
  const int index_rank = graph.shape(it.inputs[1]).rank();
  if (axis < 0 || it.attributes.get_int("batch_dims") != 0 || index_rank > 1 || !only_first_given(wanted)) return false;
  if (index_rank == 1) {
    const std::size_t data[] = {0};
    return same_layout(wanted, graph, op, data) && position_of(axis, *wanted.inputs[0]) >= 0;
  }
  if (!wanted.inputs[0] || position_of(axis, *wanted.inputs[0]) < 0) return false;
  Layout result = without_axis(*wanted.inputs[0], axis);
  if (!fits_shape(result, graph.shape(it.outputs[0]))) return false;
  if (wanted.outputs[0] && !is_same(*wanted.outputs[0], result, graph.shape(it.outputs[0]))) return false;
  wanted.outputs[0] = std::move(result);
  return true;
}
void apply_gather(Graph& graph, OpId op, const Relayout& layouts) {
  const int axis = attribute_axis(graph, op, graph.shape(graph.op(op).inputs[0]).rank());
  graph.set_attribute(op, "axis", std::int64_t{position_of(axis, *layouts.inputs[0])});
}

constexpr LayoutRule kConcatenation = {complete_concatenation, apply_concatenation};
constexpr LayoutRule kSplit = {complete_operand_axis<1, 0>, apply_operand_axis<1, 0>};
constexpr LayoutRule kSplitV = {complete_operand_axis<0, 2>, apply_operand_axis<0, 2>};
constexpr LayoutRule kCumsum = {complete_operand_axis<0, 1>, apply_operand_axis<0, 1>};
constexpr LayoutRule kArg = {complete_arg, apply_arg};
constexpr LayoutRule kPack = {complete_pack, apply_pack};
constexpr LayoutRule kUnpack = {complete_unpack, apply_unpack};
constexpr LayoutRule kGather = {complete_gather, apply_gather};

}  // namespace

const LayoutRule* find_axis_rule(std::string_view type) {
  if (type == Op::CONCATENATION) return &kConcatenation;
  if (type == Op::SPLIT) return &kSplit;
  if (type == Op::SPLIT_V) return &kSplitV;
  if (type == Op::CUMSUM || type == Op::REVERSE_V2) return &kCumsum;
  if (type == Op::ARG_MAX || type == Op::ARG_MIN) return &kArg;
  if (type == Op::PACK) return &kPack;
  if (type == Op::UNPACK) return &kUnpack;
  if (type == Op::GATHER) return &kGather;
  return nullptr;
}

}  // namespace reef::passes

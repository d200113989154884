// SPDX-License-Identifier: Apache-2.0
// Arithmetic, reductions and BROADCAST_TO on five or more axes behind a RESHAPE: axes that all operands treat alike
// become one, until four are left. Most rules of the Edge TPU, and most of TFLite's integer kernels, end at four axes;
// group statistics that are written out (EvoNorm, standard deviations of groups) come as [n, h, w, groups, channels].
//
// Two neighbouring axes can be one where every operand either has both in full or repeats along both, and a reduction
// takes both or neither. Axes of size 1 go with any neighbour; the first axis is merged last, as it is the batch.
// Exact, but for the order in which sums are added up.
//
// A last pass: the axes that it merges are those along which layout passes find their way.
#include <algorithm>

#include "ops/registry.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr int kMostAxes = 4;

ir::Shape with_rank(const ir::Shape& shape, int rank) {
  ir::Shape result;
  for (int axis = shape.rank(); axis < rank; ++axis) result.push_back(1);
  for (const std::int32_t size : shape) result.push_back(size);
  return result;
}

// One operator: its operands with as many axes as the largest has, and what it does along each axis.
struct Operands {
  std::vector<TensorId> values;  // operands but those that hold sizes or axes, in order
  std::vector<ir::Shape> shapes;
  ir::Shape full;                // operands broadcast against each other
  std::vector<bool> is_reduced;  // by axis
};

std::optional<Operands> operands_of(const Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  const ops::Form form = ops::form_of(op);
  const bool is_reduction = form == ops::Form::kReduction;
  if (!is_reduction && form != ops::Form::kUnary && form != ops::Form::kBinary && op.type != Op::BROADCAST_TO) {
    return std::nullopt;
  }
  Operands result;
  const std::size_t count = form == ops::Form::kBinary ? 2 : 1;
  for (std::size_t i = 0; i < count; ++i) result.values.push_back(op.inputs[i]);
  result.full = is_reduction ? graph.shape(op.inputs[0]) : graph.shape(op.outputs[0]);
  const int rank = result.full.rank();
  for (const TensorId tensor : result.values) {
    if (graph.shape(tensor).rank() > rank) return std::nullopt;
    result.shapes.push_back(with_rank(graph.shape(tensor), rank));
  }
  result.is_reduced.assign(static_cast<std::size_t>(rank), false);
  if (!is_reduction) return result;
  const auto axes = reduced_axes(graph, id);
  if (!axes) return std::nullopt;
  for (const int axis : *axes) result.is_reduced[at(axis)] = true;
  return result;
}

bool can_merge(const Operands& operands, int axis) {
  const int next = axis + 1;
  if (operands.full[axis] == 1 || operands.full[next] == 1) return true;
  const auto side = static_cast<std::size_t>(axis);
  if (operands.is_reduced[side] != operands.is_reduced[side + 1]) return false;
  return std::all_of(operands.shapes.begin(), operands.shapes.end(), [&](const ir::Shape& shape) {
    return (shape[axis] == operands.full[axis] && shape[next] == operands.full[next]) ||
           (shape[axis] == 1 && shape[next] == 1);
  });
}

void merge(ir::Shape& shape, int axis) {
  ir::Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i == axis + 1) continue;
    result.push_back(i == axis ? shape[i] * shape[i + 1] : shape[i]);
  }
  shape = std::move(result);
}

void merge(Operands& operands, int axis) {
  const auto side = static_cast<std::ptrdiff_t>(axis);
  // An axis of size 1 may count as reduced or as kept.
  const bool is_reduced = operands.full[axis] == 1 ? operands.is_reduced[static_cast<std::size_t>(axis) + 1]
                                                   : operands.is_reduced[at(axis)];
  merge(operands.full, axis);
  for (ir::Shape& shape : operands.shapes) merge(shape, axis);
  operands.is_reduced.erase(operands.is_reduced.begin() + side);
  operands.is_reduced[at(axis)] = is_reduced;
}

// False: more than four axes are left.
bool merge_to_fit(Operands& operands) {
  while (operands.full.rank() > kMostAxes) {
    int axis = 1;
    while (axis + 1 < operands.full.rank() && !can_merge(operands, axis)) ++axis;
    if (axis + 1 == operands.full.rank()) axis = 0;
    if (!can_merge(operands, axis)) return false;
    merge(operands, axis);
  }
  return true;
}

bool merged_axes_at(Graph& graph, OpId id) {
  const ir::Operator op = graph.op(id);
  const TensorId y = op.outputs[0];
  if (!is_float(graph, y)) return false;
  auto operands = operands_of(graph, id);
  if (!operands || operands->full.rank() <= kMostAxes) return false;
  if (std::none_of(operands->values.begin(), operands->values.end(),
                   [&](TensorId tensor) { return made_by(graph, tensor, Op::RESHAPE) != kNone; }) ||
      !merge_to_fit(*operands)) {
    return false;
  }
  std::vector<TensorId> inputs;
  for (std::size_t i = 0; i < operands->values.size(); ++i) {
    const TensorId tensor = operands->values[i];
    inputs.push_back(graph.is_constant(tensor) ? graph.reshaped_constant(tensor, operands->shapes[i])
                                               : graph.reshape(id, tensor, operands->shapes[i]));
  }
  ir::Attributes attributes = op.attributes;
  ir::Shape result = operands->full;
  if (op.type == Op::BROADCAST_TO) inputs.push_back(graph.add_ints({result.begin(), result.end()}));
  if (ops::form_of(op) == ops::Form::kReduction) {
    std::vector<std::int32_t> axes;
    for (int axis = 0; axis < result.rank(); ++axis) {
      if (!operands->is_reduced[at(axis)]) continue;
      axes.push_back(axis);
      result[axis] = 1;
    }
    inputs.push_back(graph.add_ints(std::move(axes)));
    attributes.set("keep_dims", true);
  }
  const TensorId merged = graph.add_like(y, result);
  graph.remove(id);
  graph.add_op(id, op.type, op.options_type, std::move(attributes), std::move(inputs), {merged});
  graph.reshape(id, merged, graph.shape(y), y);
  return true;
}

}  // namespace

constinit const Pass merged_axes_float_pass = {
    .name = "merged-axes",
    .summary = "Arithmetic on five axes behind a RESHAPE gets four where two can be one.",
    .safety = Safety::kRounding,
    .is_last = true,
    .at = merged_axes_at};

}  // namespace reef::passes

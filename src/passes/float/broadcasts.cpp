// SPDX-License-Identifier: Apache-2.0
// BROADCAST_TO in front of arithmetic that broadcasts by itself is left out. Arithmetic with a single number, and a
// RESHAPE between the two, come to stand in front of it, so that it can be. Exact.
#include <algorithm>

#include "ops/registry.h"
#include "passes/float/patterns.h"
#include "passes/float/reshape_axes.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// f(broadcast(x), number) = broadcast(f(x, number)).
bool goes_behind(Graph& graph, OpId id) {
  const auto parts = with_number(graph, id);
  const OpId broadcast = parts ? made_by(graph, parts->x, Op::BROADCAST_TO) : kNone;
  if (broadcast == kNone || !graph.has_one_user(parts->x)) return false;
  const std::vector<TensorId> operands = graph.op(broadcast).inputs;
  if (graph.is_constant(operands[0]) || graph.shape(operands[0]).elements() >= graph.shape(parts->x).elements()) {
    return false;
  }
  const std::size_t side = graph.op(id).inputs[0] == parts->x ? 0 : 1;
  const std::vector<TensorId> results = graph.op(id).outputs;
  const TensorId number = graph.add_floats({parts->number}, {}, graph.tensor(results[0]).name + "/number");
  const TensorId small = graph.add_like(results[0], graph.shape(operands[0]));
  std::vector<TensorId> inputs = {operands[0], operands[0]};
  inputs[1 - side] = number;
  const ir::Operator op = graph.op(id);
  graph.add_op(id, op.type, op.options_type, op.attributes, std::move(inputs), {small});
  graph.become(id, Op::BROADCAST_TO, "BroadcastToOptions", {}, {small, operands[1]});
  return true;
}

bool broadcasts_by_itself(const Graph& graph, OpId id) { return ops::has_trait(graph.op(id), ops::Trait::kBroadcasts); }

// The size of `shape` along an axis of something with `rank` axes to which it is broadcast.
std::int32_t broadcast_size(const ir::Shape& shape, int axis, int rank) {
  const int own = axis - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

// reshape(broadcast(x)) = broadcast(reshape(x)) along the axes of the result that repeat x as a whole: statistics of
// groups of channels, spread over [n, h, w, groups, channels] and read as [n, h, w, c], repeat along h and w. What
// repeats inside of an axis (along the channels of a group) is still written out in front of the RESHAPE.
bool goes_behind_reshape(Graph& graph, OpId id) {
  const TensorId wide = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  const OpId broadcast = made_by(graph, wide, Op::BROADCAST_TO);
  const std::vector<OpId> readers = graph.consumers(y);
  if (broadcast == kNone || !graph.has_one_user(wide) ||
      std::none_of(readers.begin(), readers.end(), [&](OpId op) { return broadcasts_by_itself(graph, op); })) {
    return false;
  }
  const TensorId x = graph.op(broadcast).inputs[0];
  const ir::Shape from = graph.shape(wide), to = graph.shape(y), small = graph.shape(x);
  if (from.elements() == 0 || small.rank() > from.rank()) return false;
  const ReshapeAxes axes = reshape_axes(from, to);
  std::vector<bool> repeats(axes.sizes.size(), false);
  for (int axis = 0; axis < from.rank(); ++axis) {
    const Run run = axes.from[at(axis)];
    for (int fine = run.first; fine < run.first + run.count; ++fine) {
      const auto at = static_cast<std::size_t>(fine);
      repeats[at] = broadcast_size(small, axis, from.rank()) == 1 && !axes.is_part_of_one[at];
    }
  }
  ir::Shape narrow_to = to, narrow_from = from;
  std::vector<bool> is_left_out(axes.sizes.size(), false);
  for (int axis = 0; axis < to.rank(); ++axis) {
    const Run run = axes.to[at(axis)];
    const auto first = repeats.begin() + run.first;
    if (run.count == 0 || std::find(first, first + run.count, false) != first + run.count) continue;
    std::fill_n(is_left_out.begin() + run.first, run.count, true);
    narrow_to[axis] = 1;
  }
  if (narrow_to == to) return false;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const Run run = axes.from[at(axis)];
    for (int fine = run.first; fine < run.first + run.count; ++fine) {
      const auto at = static_cast<std::size_t>(fine);
      if (is_left_out[at]) narrow_from[axis] /= static_cast<std::int32_t>(axes.sizes[at]);
    }
  }
  TensorId narrow = x;
  if (narrow_from.elements() != small.elements()) {
    narrow = graph.add_like(x, narrow_from);
    graph.add_op(id, Op::BROADCAST_TO, "BroadcastToOptions", {},
                 {x, graph.add_ints({narrow_from.begin(), narrow_from.end()})}, {narrow});
  }
  const TensorId shaped = graph.reshape(id, narrow, narrow_to);
  graph.become(id, Op::BROADCAST_TO, "BroadcastToOptions", {}, {shaped, graph.add_ints({to.begin(), to.end()})});
  return true;
}

bool broadcasts_at(Graph& graph, OpId id) {
  if (graph.is(id, Op::RESHAPE)) return goes_behind_reshape(graph, id);
  if (!broadcasts_by_itself(graph, id)) return false;
  const std::vector<TensorId> inputs = graph.op(id).inputs;
  const ir::Shape& result = graph.shape(graph.op(id).outputs[0]);
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const OpId broadcast = made_by(graph, inputs[side], Op::BROADCAST_TO);
    if (broadcast == kNone || inputs[0] == inputs[1] || graph.shape(inputs[1 - side]) != result) continue;
    const TensorId x = graph.op(broadcast).inputs[0];
    if (graph.shape(x).rank() > result.rank()) continue;
    graph.set_input(id, side, x);
    return true;
  }
  return is_float(graph, graph.op(id).outputs[0]) && goes_behind(graph, id);
}

}  // namespace

constinit const Pass broadcasts_float_pass = {
    .name = "broadcasts",
    .summary = "BROADCAST_TO in front of arithmetic that broadcasts anyway is left out.",
    .at = broadcasts_at};

}  // namespace reef::passes

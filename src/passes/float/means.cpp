// SPDX-License-Identifier: Apache-2.0
// Reductions in one step: a RESHAPE that merges axes in front of a reduction over them is left out (a pooling written
// as view(n, c, -1).mean(2)), a RESHAPE behind one that only brings the axes back becomes keep_dims, a reduction of a
// reduction is one, and a sum divided by its number of elements is MEAN. Sums may be added up in another order, and
// differ by rounding then.
#include <algorithm>

#include "passes/float/patterns.h"
#include "passes/float/reshape_axes.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool is_reduction(const std::string& type) {
  return type == Op::MEAN || type == Op::SUM || type == Op::REDUCE_MAX || type == Op::REDUCE_MIN;
}

void become_reduction(Graph& graph, OpId id, TensorId x, const std::vector<int>& axes, bool keep_dims) {
  const std::string type = graph.type(id);
  ir::Attributes attributes;
  attributes.set("keep_dims", keep_dims);
  graph.become(id, type, "ReducerOptions", std::move(attributes), {x, graph.add_ints({axes.begin(), axes.end()})});
}

// Adds axes of size 1 to those that are reduced, so that `wanted` is left; false: that is not possible.
bool drop_ones(const ir::Shape& from, const ir::Shape& wanted, std::vector<int>& axes) {
  std::vector<int> all;
  int next = 0;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_reduced && next < wanted.rank() && wanted[next] == from[axis]) {
      ++next;
    } else if (is_reduced || from[axis] == 1) {
      all.push_back(axis);
    } else {
      return false;
    }
  }
  axes = std::move(all);
  return next == wanted.rank();
}

// MEAN(RESHAPE(x)) over axes that are whole axes of x.
bool skip_reshape(Graph& graph, OpId id) {
  const TensorId flat = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  const OpId reshape = made_by(graph, flat, Op::RESHAPE);
  const auto axes = reduced_axes(graph, id);
  if (reshape == kNone || !axes) return false;
  const TensorId x = graph.op(reshape).inputs[0];
  const ir::Shape from = graph.shape(x), to = graph.shape(flat);
  if (from.elements() != to.elements() || from.rank() > 4) return false;
  const ReshapeAxes runs = reshape_axes(from, to);
  std::vector<bool> is_reduced(runs.sizes.size(), false);
  for (const int axis : *axes) {
    const Run run = runs.to[at(axis)];
    for (int k = 0; k < run.count; ++k) is_reduced[at(run.first + k)] = true;
  }
  if (std::find(runs.is_part_of_one.begin(), runs.is_part_of_one.end(), true) != runs.is_part_of_one.end())
    return false;
  std::vector<int> own;
  ir::Shape dropped, kept;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const Run run = runs.from[at(axis)];
    int reduced = 0;
    for (int k = 0; k < run.count; ++k) reduced += is_reduced[at(run.first + k)] ? 1 : 0;
    if (reduced != 0 && reduced != run.count) return false;
    if (reduced > 0) own.push_back(axis);
    if (reduced == 0) dropped.push_back(from[axis]);
    kept.push_back(reduced > 0 ? 1 : from[axis]);
  }
  if (own.empty()) return false;
  const bool drops = dropped == graph.shape(y), keeps = kept == graph.shape(y);
  if (!drops && !keeps && !drop_ones(from, graph.shape(y), own)) return false;
  become_reduction(graph, id, x, own, keeps && !drops);
  return true;
}

// RESHAPE(MEAN(x)) that gives what keep_dims would.
bool keep_dims(Graph& graph, OpId id) {
  const TensorId y = graph.op(id).outputs[0];
  const auto axes = reduced_axes(graph, id);
  const OpId reshape = graph.only_user(y);
  if (!axes || graph.op(id).attributes.get_bool("keep_dims") || !graph.is(reshape, Op::RESHAPE) ||
      !graph.is_sound(reshape)) {
    return false;
  }
  ir::Shape kept = graph.shape(graph.op(id).inputs[0]);
  for (const int axis : *axes) kept[axis] = 1;
  const TensorId result = graph.op(reshape).outputs[0];
  if (graph.shape(result) != kept) return false;
  graph.remove(reshape);
  graph.set_outputs(id, {result});
  graph.set_attribute(id, "keep_dims", true);
  return true;
}

// MEAN of MEAN, SUM of SUM ...
bool join(Graph& graph, OpId id) {
  const TensorId between = graph.op(id).inputs[0];
  const OpId inner = made_by(graph, between, graph.type(id));
  if (inner == kNone || !graph.has_one_user(between) || !is_float(graph, between)) return false;
  const bool keeps = graph.op(inner).attributes.get_bool("keep_dims");
  if (keeps != graph.op(id).attributes.get_bool("keep_dims")) return false;
  const auto first = reduced_axes(graph, inner), second = reduced_axes(graph, id);
  if (!first || !second) return false;
  std::vector<int> remaining;  // axes of the first's operand that are left
  for (int axis = 0; axis < graph.shape(graph.op(inner).inputs[0]).rank(); ++axis) {
    if (keeps || std::find(first->begin(), first->end(), axis) == first->end()) remaining.push_back(axis);
  }
  if (static_cast<int>(remaining.size()) != graph.shape(between).rank()) return false;
  std::vector<int> axes = *first;
  for (const int axis : *second) axes.push_back(remaining[at(axis)]);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  become_reduction(graph, id, graph.op(inner).inputs[0], axes, keeps);
  return true;
}

// SUM(x) / n, or times 1 / n.
bool sum_to_mean(Graph& graph, OpId id) {
  const bool is_quotient = graph.is(id, Op::DIV);
  if ((!is_quotient && !graph.is(id, Op::MUL)) || !has_no_activation(graph, id)) return false;
  const auto parts = with_number(graph, id);
  if (!parts || (is_quotient && parts->number_first) || parts->number == 0) return false;
  const OpId sum = made_by(graph, parts->x, Op::SUM);
  if (sum == kNone || !is_float(graph, parts->x)) return false;
  const TensorId x = graph.op(sum).inputs[0];
  const double count =
      static_cast<double>(graph.shape(x).elements()) / static_cast<double>(graph.shape(parts->x).elements());
  if (!is_about(is_quotient ? parts->number : 1.0 / parts->number, count)) return false;
  const std::vector<TensorId> inputs = graph.op(sum).inputs;
  ir::Attributes attributes;
  attributes.set("keep_dims", graph.op(sum).attributes.get_bool("keep_dims"));
  graph.become(id, Op::MEAN, "ReducerOptions", std::move(attributes), inputs);
  return true;
}

bool means_at(Graph& graph, OpId id) {
  // Every kernel rounds integers in its own way.
  if (!is_float(graph, graph.op(id).outputs[0])) return false;
  if (!is_reduction(graph.type(id))) return sum_to_mean(graph, id);
  return keep_dims(graph, id) || join(graph, id) || skip_reshape(graph, id);
}

}  // namespace

constinit const Pass means_float_pass = {
    .name = "means",
    .summary =
        "MEAN, SUM, REDUCE_MAX/MIN in one step: no RESHAPE around, no reduction of a reduction, SUM / n is MEAN.",
    .safety = Safety::kRounding,
    .at = means_at};

}  // namespace reef::passes

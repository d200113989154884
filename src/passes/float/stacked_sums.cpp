// SPDX-License-Identifier: Apache-2.0
// A sum over a short axis of a tensor with five axes or more becomes the sum of its parts, which have one axis less:
// branches that are stacked, weighted by a softmax over the branches and added up (the attention of selective kernels
// and of split-attention networks). Tensors of more than four axes do not fit the chip, the parts do.
//
// A part is taken where the axis begins: a stack's operand, a slice of a reshaped tensor's channels, one operand of an
// element-wise operator at a time. The softmax of two branches is LOGISTIC of their difference. Sums are added in the
// order of the axis; the softmax may differ by rounding.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostParts = 8;
constexpr int kLeastRank = 5;
constexpr int kMostSteps = 16;  // from the sum to where the axis begins

ir::Shape without(const ir::Shape& shape, int axis) {
  ir::Shape rest;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) rest.push_back(shape[i]);
  }
  return rest;
}

std::int64_t elements_before(const ir::Shape& shape, int axis) {
  std::int64_t count = 1;
  for (int i = 0; i < axis; ++i) count *= shape[i];
  return count;
}

// An operand of softmax(x) over `axis`, written as TRANSPOSE, SOFTMAX, TRANSPOSE back; kNone: `tensor` is none.
TensorId softmax_operand(const Graph& graph, TensorId tensor, int axis) {
  const OpId back = made_by(graph, tensor, Op::TRANSPOSE);
  if (back == kNone) return kNone;
  const OpId softmax = made_by(graph, graph.op(back).inputs[0], Op::SOFTMAX);
  if (softmax == kNone || graph.op(softmax).attributes.get_float("beta", 1) != 1) return kNone;
  const OpId there = made_by(graph, graph.op(softmax).inputs[0], Op::TRANSPOSE);
  if (there == kNone) return kNone;
  const auto first = graph.ints(graph.op(there).inputs[1]), second = graph.ints(graph.op(back).inputs[1]);
  if (!first || !second || first->size() != second->size() || first->empty()) return kNone;
  for (std::size_t i = 0; i < first->size(); ++i) {
    const auto at = static_cast<std::size_t>((*second)[i]);
    if (at >= first->size() || (*first)[at] != static_cast<std::int64_t>(i)) return kNone;
  }
  return first->back() == axis ? graph.op(there).inputs[0] : kNone;
}

class Parts {
 public:
  Parts(Graph& graph, OpId near) : graph_(graph), near_(near) {}

  // Element `index` of an axis, without that axis.
  TensorId part(TensorId x, int axis, std::int32_t index, int steps = 0) {
    const ir::Shape shape = graph_.shape(x), rest = without(shape, axis);
    const OpId op = steps < kMostSteps ? graph_.producer(x) : kNone;
    if (op == kNone || !graph_.is_sound(op)) return slice(x, axis, index, 1, rest);
    const std::string type = graph_.type(op);
    if (type == Op::CONCATENATION || type == Op::PACK) {
      const TensorId found = of_stack(op, axis, shape[axis], index, rest);
      if (found != kNone) return found;
    }
    if (type == Op::ADD || type == Op::SUB || type == Op::MUL || type == Op::DIV)
      return of_pair(op, axis, index, steps);
    if (type == Op::RESHAPE) return of_reshape(op, axis, index, steps);
    if (const TensorId z = softmax_operand(graph_, x, axis); z != kNone && shape[axis] == 2) {
      const TensorId difference = graph_.add_like(x, rest);
      const TensorId own = part(z, axis, index, steps + 1), other = part(z, axis, 1 - index, steps + 1);
      graph_.add_op(near_, Op::SUB, "SubOptions", activation_attributes("NONE"), {own, other}, {difference});
      const TensorId result = graph_.add_like(x, rest);
      graph_.add_op(near_, Op::LOGISTIC, "", {}, {difference}, {result});
      return result;
    }
    return slice(x, axis, index, 1, rest);
  }

 private:
  TensorId slice(TensorId x, int axis, std::int32_t begin, std::int32_t size, const ir::Shape& result) {
    ir::Shape sizes = graph_.shape(x);
    std::vector<std::int64_t> begins(static_cast<std::size_t>(sizes.rank()), 0);
    begins[at(axis)] = begin;
    sizes[axis] = size;
    const TensorId piece = graph_.add_like(x, sizes);
    graph_.add_op(near_, Op::SLICE, "SliceOptions", {}, slice_operands(graph_, x, begins, sizes), {piece});
    return graph_.reshape(near_, piece, result);
  }

  TensorId of_stack(OpId op, int axis, std::int32_t count, std::int32_t index, const ir::Shape& rest) {
    const ir::Operator& stack = graph_.op(op);
    std::int64_t along = stack.attributes.get_int("axis", 0);
    if (along < 0) along += rest.rank() + 1;
    if (along != axis || static_cast<std::int32_t>(stack.inputs.size()) != count || !has_no_activation(graph_, op)) {
      return kNone;
    }
    const TensorId operand = stack.inputs[at(index)];
    if (graph_.shape(operand).elements() != rest.elements() || !is_float(graph_, operand)) return kNone;
    return graph_.shape(operand) == rest ? operand : graph_.reshape(near_, operand, rest);
  }

  TensorId of_pair(OpId op, int axis, std::int32_t index, int steps) {
    const ir::Operator pair = graph_.op(op);
    const TensorId y = pair.outputs[0];
    const int rank = graph_.shape(y).rank();
    std::vector<TensorId> operands;
    for (const TensorId x : {pair.inputs[0], pair.inputs[1]}) {
      const int own = axis - (rank - graph_.shape(x).rank());
      if (own < 0) {
        operands.push_back(x);
      } else if (graph_.shape(x)[own] == 1) {
        operands.push_back(graph_.reshape(near_, x, without(graph_.shape(x), own)));
      } else {
        operands.push_back(part(x, own, index, steps + 1));
      }
    }
    const TensorId result = graph_.add_like(y, without(graph_.shape(y), axis));
    graph_.add_op(near_, pair.type, pair.options_type, pair.attributes, operands, {result});
    return result;
  }

  TensorId of_reshape(OpId op, int axis, std::int32_t index, int steps) {
    const TensorId x = graph_.op(op).inputs[0], y = graph_.op(op).outputs[0];
    const ir::Shape from = graph_.shape(x), to = graph_.shape(y), rest = without(to, axis);
    const std::int64_t before = elements_before(to, axis);
    for (int own = 0; own < from.rank(); ++own) {
      if (elements_before(from, own) != before || from[own] % to[axis] != 0) continue;
      if (from[own] == to[axis]) return graph_.reshape(near_, part(x, own, index, steps + 1), rest);
      const std::int32_t size = from[own] / to[axis];
      return slice(x, own, index * size, size, rest);
    }
    return slice(y, axis, index, 1, rest);
  }

  Graph& graph_;
  OpId near_;
};

OpName joined_by(const std::string& reduction) {
  if (reduction == Op::SUM) return Op::ADD;
  if (reduction == Op::REDUCE_MAX) return Op::MAXIMUM;
  if (reduction == Op::REDUCE_MIN) return Op::MINIMUM;
  return {};
}

bool stacked_sums_at(Graph& graph, OpId op) {
  const OpName joint = joined_by(graph.type(op));
  if (joint.empty()) return false;
  const TensorId x = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
  const auto axes = reduced_axes(graph, op);
  const ir::Shape shape = graph.shape(x);
  if (!axes || axes->size() != 1 || shape.rank() < kLeastRank || !is_float(graph, x)) return false;
  const int axis = (*axes)[0];
  if (shape[axis] < 2 || shape[axis] > kMostParts || shape.elements() == 0) return false;
  Parts parts(graph, op);
  const bool is_sum = joint == Op::ADD;
  const std::string options = is_sum ? "AddOptions" : "MaximumMinimumOptions";
  TensorId total = parts.part(x, axis, 0);
  for (std::int32_t i = 1; i < shape[axis]; ++i) {
    const TensorId next = parts.part(x, axis, i), sum = graph.add_like(y, without(shape, axis));
    graph.add_op(op, joint, options, is_sum ? activation_attributes("NONE") : ir::Attributes(), {total, next}, {sum});
    total = sum;
  }
  ir::Attributes attributes;
  const ir::Shape result = graph.shape(y);
  attributes.set("new_shape", std::vector<std::int64_t>(result.begin(), result.end()));
  graph.become(op, Op::RESHAPE, "ReshapeOptions", std::move(attributes),
               {total, graph.add_ints({result.begin(), result.end()})});
  return true;
}

}  // namespace

constinit const Pass stacked_sums_float_pass = {
    .name = "stacked-sums",
    .summary =
        "SUM, REDUCE_MAX, REDUCE_MIN over an axis of at most 8 of a tensor with five axes or more become ADD (MAXIMUM, "
        "MINIMUM) of parts with one axis less; the softmax of two stacked branches is LOGISTIC of their difference: "
        "the attention of SKNet and ResNeSt, which then fits the chip.",
    .safety = Safety::kRounding,
    .at = stacked_sums_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// A SLICE goes in front of the operator whose result it cuts, so that what is not picked is not computed.
//
// Networks that classify a sequence by one of its places (BERT and vision transformers by their first token) compute
// the last block for all places and then pick one. Every operator that treats places alike may pick first: its operands
// are cut instead of its result, and the cuts move on until they come to one who mixes places, the keys and values of
// attention. Beside the time, a quantized model gains that ranges are those of the values that matter.
//
//   before: y = ADD(x, LAYER(n)); z = SLICE(y)        after: z = ADD(SLICE(x), LAYER(SLICE(n)))
//
// Only where nobody reads the result but the SLICE, and where that keeps half of it at most: an operator with two
// operands has two SLICEs afterwards. Two equal SLICEs of one tensor become one on the way, so that a residual, which
// several operators read, is left behind as soon as the last of them needs no more than that part. Exact: each element
// is computed from the same operands as before. SLICEs only ever move towards the inputs, so this ends.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// A part of a tensor: [begin, begin + size) along each axis.
struct Part {
  std::vector<std::int64_t> begins;
  ir::Shape sizes;

  static Part whole(const ir::Shape& shape) {
    return {std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0), shape};
  }
  std::int64_t begin(int axis) const { return begins[at(axis)]; }
  void take(int axis, const Part& from, int from_axis) {
    begins[at(axis)] = from.begin(from_axis);
    sizes[axis] = from.sizes[from_axis];
  }
};

// The ranges that an operator needs of its operands, in order; operands beyond the last are needed whole.
using Needs = std::vector<Part>;

class Operator {
 public:
  // `part` is what is wanted of the only result.
  Operator(const Graph& graph, OpId id, const Part& part)
      : graph_(graph), id_(id), op_(graph.op(id)), result_(graph.shape(op_.outputs[0])), part_(part) {}

  std::optional<Needs> needs() const {
    const std::string& type = graph_.type(id_);
    if (find_layout_rule(graph_, id_) == &kElementwiseRule) return of_elements();
    if (type == Op::RESHAPE) return of_reshape();
    if (type == Op::TRANSPOSE) return of_transpose();
    if (type == Op::MEAN || type == Op::SUM || type == Op::REDUCE_MAX || type == Op::REDUCE_MIN) return of_reduction();
    if (type == Op::SOFTMAX || type == Op::LOG_SOFTMAX || type == Op::L2_NORMALIZATION) return of_rows();
    if (type == Op::FULLY_CONNECTED) return of_rows();
    if (type == Op::CONV_2D || type == Op::DEPTHWISE_CONV_2D) return of_pixels();
    if (type == Op::BATCH_MATMUL) return of_products();
    return std::nullopt;
  }

 private:
  const ir::Shape& shape(std::size_t input) const { return graph_.shape(op_.inputs[input]); }
  bool is_cut(int axis) const { return part_.sizes[axis] != result_[axis]; }

  // Operands of lower rank, and axes of size 1, are broadcast.
  std::optional<Needs> of_elements() const {
    Needs needs;
    for (std::size_t i = 0; i < op_.inputs.size(); ++i) {
      Part need = Part::whole(shape(i));
      const int missing = result_.rank() - shape(i).rank();
      if (missing < 0) return std::nullopt;
      for (int axis = 0; axis < shape(i).rank(); ++axis) {
        if (shape(i)[axis] == result_[axis + missing]) {
          need.take(axis, part_, axis + missing);
        } else if (shape(i)[axis] != 1) {
          return std::nullopt;
        }
      }
      needs.push_back(std::move(need));
    }
    return needs;
  }

  // The part is of axes that are there before, with as many elements around them.
  std::optional<Needs> of_reshape() const {
    Part need = Part::whole(shape(0));
    std::int64_t outer = 1;
    for (int axis = 0; axis < result_.rank(); outer *= result_[axis++]) {
      if (!is_cut(axis)) continue;
      int same = 0;
      for (std::int64_t before = 1; same < shape(0).rank(); before *= shape(0)[same++]) {
        if (before == outer && shape(0)[same] == result_[axis]) break;
      }
      if (same == shape(0).rank()) return std::nullopt;
      need.take(same, part_, axis);
    }
    return Needs{std::move(need)};
  }

  std::optional<Needs> of_transpose() const {
    const auto order = graph_.ints(op_.inputs[1]);
    if (!order || static_cast<int>(order->size()) != result_.rank() || shape(0).rank() != result_.rank()) {
      return std::nullopt;
    }
    Part need = Part::whole(shape(0));
    for (int axis = 0; axis < result_.rank(); ++axis) {
      const int from = normal_axis((*order)[at(axis)], result_.rank());
      if (from < 0 || shape(0)[from] != result_[axis]) return std::nullopt;
      need.take(from, part_, axis);
    }
    return Needs{std::move(need)};
  }

  std::optional<Needs> of_reduction() const {
    const auto reduced = reduced_axes(graph_, id_);
    if (!reduced) return std::nullopt;
    const bool keeps = shape(0).rank() == result_.rank();
    Part need = Part::whole(shape(0));
    for (int axis = 0, at = 0; axis < shape(0).rank(); ++axis) {
      if (std::find(reduced->begin(), reduced->end(), axis) != reduced->end()) {
        at += keeps ? 1 : 0;
      } else if (at < result_.rank() && result_[at] == shape(0)[axis]) {
        need.take(axis, part_, at++);
      } else {
        return std::nullopt;
      }
    }
    return Needs{std::move(need)};
  }

  // Functions of whole rows along the last axis.
  std::optional<Needs> of_rows() const {
    const int last = result_.rank() - 1;
    if (last < 1 || shape(0).rank() != result_.rank() || is_cut(last)) return std::nullopt;
    Part need = Part::whole(shape(0));
    for (int axis = 0; axis < last; ++axis) {
      if (shape(0)[axis] != result_[axis]) return std::nullopt;
      need.take(axis, part_, axis);
    }
    return Needs{std::move(need)};
  }

  // Convolutions that look at one pixel at a time.
  std::optional<Needs> of_pixels() const {
    const ir::Shape& filter = shape(1);
    const bool is_pointwise = filter.rank() == 4 && filter[1] == 1 && filter[2] == 1;
    const bool has_steps = op_.attributes.get_int("stride_w") != 1 || op_.attributes.get_int("stride_h") != 1;
    if (!is_pointwise || has_steps || result_.rank() != 4) return std::nullopt;
    return of_rows();
  }

  std::optional<Needs> of_products() const {
    const int rank = result_.rank();
    if (rank < 2 || shape(0).rank() != rank || shape(1).rank() != rank) return std::nullopt;
    Needs needs = {Part::whole(shape(0)), Part::whole(shape(1))};
    for (int axis = 0; axis < rank - 2; ++axis) {
      for (std::size_t i = 0; i < 2; ++i) {
        if (shape(i)[axis] == result_[axis]) needs[i].take(axis, part_, axis);
      }
    }
    const int row = op_.attributes.get_bool("adj_x") ? rank - 1 : rank - 2;
    const int column = op_.attributes.get_bool("adj_y") ? rank - 2 : rank - 1;
    if (shape(0)[row] != result_[rank - 2] || shape(1)[column] != result_[rank - 1]) return std::nullopt;
    needs[0].take(row, part_, rank - 2);
    needs[1].take(column, part_, rank - 1);
    return needs;
  }

  const Graph& graph_;
  OpId id_;
  const ir::Operator& op_;
  const ir::Shape& result_;
  const Part& part_;
};

// The part of a tensor: itself, a SLICE of it that is there already, or a new one.
TensorId cut(Graph& graph, OpId near, TensorId x, const Part& part) {
  if (part.sizes == graph.shape(x)) return x;
  for (const OpId user : graph.users(x)) {
    if (!graph.is(user, Op::SLICE) || !graph.is_sound(user) || graph.op(user).inputs[0] != x) continue;
    const TensorId z = graph.op(user).outputs[0];
    if (slice_begins(graph, user) == part.begins && graph.shape(z) == part.sizes && same_numbers(graph, x, z)) return z;
  }
  const TensorId piece = graph.add_like(x, part.sizes);
  graph.add_op(near, Op::SLICE, "SliceOptions", {}, slice_operands(graph, x, part.begins, part.sizes), {piece});
  return piece;
}

// A part of a CONCATENATION that lies within one operand is a part of that.
bool pick_operand(Graph& graph, OpId slice, OpId joint, Part part) {
  const ir::Operator& op = graph.op(joint);
  const int axis = normal_axis(op.attributes.get_int("axis"), part.sizes.rank());
  if (axis < 0 || !has_no_activation(graph, joint)) return false;
  for (const TensorId operand : op.inputs) {
    if (graph.shape(operand).rank() != part.sizes.rank()) return false;
    const std::int64_t size = graph.shape(operand)[axis], begin = part.begin(axis);
    if (begin < size) {
      if (begin + part.sizes[axis] > size || !same_numbers(graph, operand, graph.op(slice).outputs[0])) return false;
      graph.become(slice, Op::SLICE, "SliceOptions", {}, slice_operands(graph, operand, part.begins, part.sizes));
      return true;
    }
    part.begins[at(axis)] -= size;
  }
  return false;
}

bool pick_early_at(Graph& graph, OpId slice) {
  const auto begins = slice_begins(graph, slice);
  if (!begins) return false;
  const TensorId y = graph.op(slice).inputs[0], z = graph.op(slice).outputs[0];
  const OpId maker = graph.producer(y);
  if (maker == kNone || graph.is_graph_output(y) || !graph.has_one_user(y) || !graph.is_sound(maker)) return false;
  if (graph.op(maker).outputs.size() != 1 || !same_numbers(graph, y, z)) return false;
  if (graph.tensor(y).quantization.is_per_axis()) return false;
  const Part part{*begins, graph.shape(z)};
  if (graph.is(maker, Op::CONCATENATION)) return pick_operand(graph, slice, maker, part);
  if (part.sizes.elements() * 2 > graph.shape(y).elements()) return false;
  const auto needs = Operator(graph, maker, part).needs();
  if (!needs) return false;
  std::vector<TensorId> inputs = graph.op(maker).inputs;
  for (std::size_t i = 0; i < needs->size(); ++i) {
    if (inputs[i] < 0 || graph.tensor(inputs[i]).quantization.is_per_axis()) return false;
  }
  for (std::size_t i = 0; i < needs->size(); ++i) inputs[i] = cut(graph, maker, inputs[i], (*needs)[i]);
  graph.remove(slice);
  if (graph.is(maker, Op::RESHAPE)) {
    graph.remove(maker);
    graph.reshape(maker, inputs[0], part.sizes, z);
  } else {
    graph.set_outputs(maker, {z});
    graph.set_inputs(maker, std::move(inputs));
  }
  return true;
}

}  // namespace

constinit const Pass pick_early_float_pass = {
    .name = "pick-early",
    .summary =
        "A SLICE that keeps half or less goes in front of the operators whose result it cuts, up to one that mixes "
        "places: a transformer that classifies by one token computes its last block for that token alone.",
    .is_last = true,
    .at = pick_early_at};

}  // namespace reef::passes

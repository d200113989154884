// SPDX-License-Identifier: Apache-2.0
// Operators on tensors of more dimensions than the chip takes (three, with a batch of 1 before them), which treat
// neighbouring dimensions alike, work on fewer: attention of several heads or windows, [3, heads, tokens, channels].
//
// For each kind of operator its dimensions fall into groups: a SPLIT has those before its axis, the axis, and those
// behind it; a product of matrices has the batches, rows and columns; a sum has runs of dimensions that both operands
// have or that one of them repeats. Each group becomes one dimension, with RESHAPEs around that move nothing. RESHAPEs
// that follow each other then become one, so that no tensor of many dimensions is left.
#include <algorithm>

#include "ops/registry.h"
#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

constexpr int kMostGroups = 3;

// Operators whose results follow their operands element by element: one operand, or two that repeat each other.
bool is_elementwise(const ir::Operator& op, std::size_t operands) {
  const ops::OpDef* const def = ops::find_op(op);
  const ops::InputSet all = operands == 1 ? ops::input_set({0}) : ops::input_set({0, 1});
  return def != nullptr && op.inputs.size() == operands && (def->elementwise & all) == all;
}

// Operators on rows of the last dimension, each row by itself.
bool is_by_rows(const ir::Operator& op) { return op.type == "SOFTMAX" || op.type == "L2_NORMALIZATION"; }

// Whether the chip would refuse the shape: more than three dimensions are above 1.
bool is_too_deep(const ir::Shape& shape) {
  for (int d = 0; d + 3 < shape.rank(); ++d) {
    if (shape[d] != 1) return true;
  }
  return false;
}

// Four dimensions, the last of which are `dims`.
ir::Shape four(std::initializer_list<std::int64_t> dims) {
  ir::Shape shape;
  for (std::size_t i = dims.size(); i < 4; ++i) shape.push_back(1);
  for (const std::int64_t dim : dims) shape.push_back(static_cast<std::int32_t>(dim));
  return shape;
}

// Code is generated for four dimensions; more are refused there even where all but three are 1.
bool has_too_many(const ir::Shape& shape) { return shape.rank() > 4; }

// The operator with its results as new tensors of the given shapes, which are then reshaped to what they were.
bool replace(GraphEdit& edit, std::int32_t index, OpList& list, ir::Operator op,
             const std::vector<ir::Shape>& results) {
  const std::vector<std::int32_t> wanted = op.outputs;
  std::vector<ir::Operator> ops = list.take();
  OpList behind(edit, edit.tensor(wanted[0]).name);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (results[i] == edit.shape(wanted[i])) continue;
    op.outputs[i] = behind.tensor_like(wanted[i], results[i]);
    behind.reshape(op.outputs[i], edit.shape(wanted[i]), wanted[i]);
  }
  ops.push_back(std::move(op));
  for (ir::Operator& last : behind.take()) ops.push_back(std::move(last));
  return edit.commit(index, std::move(ops), "the same on fewer dimensions", 0, "RESHAPE");
}

bool unary(GraphEdit& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape shape = edit.shape(op.inputs[0]);
  if (edit.shape(op.outputs[0]) != shape || shape.rank() < 3) return false;
  const ir::Shape flat = four({shape.product(0, shape.rank() - 2), shape.last(1), shape.last()});
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  op.inputs[0] = list.reshape(op.inputs[0], flat);
  return replace(edit, index, list, std::move(op), {flat});
}

// A dimension of an operand from the front, seen with as many as the result has.
std::int32_t dimension(const ir::Shape& shape, int rank, int d) {
  const int own = d - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

// Runs of dimensions along which each operand has all, or one.
bool binary(GraphEdit& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape out = edit.shape(op.outputs[0]), a = edit.shape(op.inputs[0]), b = edit.shape(op.inputs[1]);
  struct Group {
    std::int64_t size = 1;
    bool a = false, b = false;
  };
  std::vector<Group> groups;
  for (int d = 0; d < out.rank(); ++d) {
    if (out[d] == 1) continue;
    const Group next{out[d], dimension(a, out.rank(), d) == out[d], dimension(b, out.rank(), d) == out[d]};
    // The last dimension stays one of its own: it is the channels.
    const bool joins = !groups.empty() && groups.back().a == next.a && groups.back().b == next.b && d + 1 < out.rank();
    if (joins) {
      groups.back().size *= next.size;
    } else {
      groups.push_back(next);
    }
  }
  // Channels give way where there are too many groups.
  if (groups.size() == kMostGroups + 1) {
    const Group last = groups.back();
    Group& before = groups[groups.size() - 2];
    if (before.a != last.a || before.b != last.b) return false;
    before.size *= last.size;
    groups.pop_back();
  }
  if (groups.size() > kMostGroups) return false;
  ir::Shape result{1}, shape_a{1}, shape_b{1};
  for (std::size_t i = groups.size(); i < kMostGroups; ++i) {
    for (ir::Shape* shape : {&result, &shape_a, &shape_b}) shape->push_back(1);
  }
  for (const Group& group : groups) {
    result.push_back(static_cast<std::int32_t>(group.size));
    shape_a.push_back(static_cast<std::int32_t>(group.a ? group.size : 1));
    shape_b.push_back(static_cast<std::int32_t>(group.b ? group.size : 1));
  }
  if (result.elements() != out.elements() || shape_a.elements() != a.elements() || shape_b.elements() != b.elements()) {
    return false;
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const auto reshaped = [&](std::int32_t tensor, const ir::Shape& shape) {
    if (edit.shape(tensor) == shape) return tensor;
    if (!edit.is_constant(tensor)) return list.reshape(tensor, shape);
    ir::Tensor constant = edit.tensor(tensor);
    constant.shape = shape;
    constant.shape_signature.clear();
    return edit.add_tensor(std::move(constant));
  };
  op.inputs[0] = reshaped(op.inputs[0], shape_a);
  op.inputs[1] = reshaped(op.inputs[1], shape_b);
  return replace(edit, index, list, std::move(op), {result});
}

bool matmul(GraphEdit& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape a = edit.shape(op.inputs[0]), b = edit.shape(op.inputs[1]), out = edit.shape(op.outputs[0]);
  if (a.rank() < 2 || b.rank() < 2) return false;
  const std::int64_t batches = out.product(0, out.rank() - 2);
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  for (std::size_t k = 0; k < 2; ++k) {
    const ir::Shape& shape = k == 0 ? a : b;
    const std::int64_t own = shape.product(0, shape.rank() - 2);
    if ((own != batches && own != 1) || edit.is_constant(op.inputs[k])) return false;
    op.inputs[k] = list.reshape(op.inputs[k], four({own, shape.last(1), shape.last()}));
  }
  return replace(edit, index, list, std::move(op), {four({batches, out.last(1), out.last()})});
}

// The axis and what is before and behind it; where nothing is before, the axis and the next are one.
bool split(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const auto axes = edit.ints(op.inputs[0]);
  const ir::Shape shape = edit.shape(op.inputs[1]);
  if (!axes || axes->size() != 1) return false;
  const auto axis = static_cast<int>((*axes)[0] < 0 ? (*axes)[0] + shape.rank() : (*axes)[0]);
  const auto pieces = static_cast<std::int64_t>(op.outputs.size());
  if (axis < 0 || axis >= shape.rank() || shape[axis] % pieces != 0) return false;
  const std::int64_t outer = shape.product(0, axis);
  const int inner = shape.rank() - axis - 1;
  ir::Shape flat;
  int flat_axis = 2;
  if (outer == 1 && inner >= 2) {
    flat = four({shape.product(axis, shape.rank() - 2), shape.last(1), shape.last()});
    flat_axis = 1;
  } else if (inner >= 1) {  // with the next dimensions but the last
    flat = four({outer, shape.product(axis, shape.rank() - 1), shape.last()});
  } else {
    flat = four({shape.product(0, axis - 1), shape.last(1), shape.last()});
    flat_axis = 3;
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t from = list.reshape(op.inputs[1], flat);
  const std::vector<std::int32_t> parts = list.split(from, flat_axis, static_cast<int>(pieces));
  for (std::size_t i = 0; i < parts.size(); ++i) list.reshape(parts[i], edit.shape(op.outputs[i]), op.outputs[i]);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, "RESHAPE");
}

// What is before the axis, the axis and what is behind it. PACK has a dimension of its own for the axis.
bool concatenation(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const std::int32_t y = op.outputs[0];
  const ir::Shape shape = edit.shape(y);
  const std::int64_t given = op.attributes.get_int("axis");
  const auto axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
  if (axis < 0 || axis >= shape.rank()) return false;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return false;
  const std::int64_t outer = shape.product(0, axis), inner = shape.product(axis + 1, shape.rank());
  if (inner == 1 && axis == 0) return false;
  // Along channels nothing is behind the axis, and what is before it are rows and columns.
  const auto flat_with = [&](std::int64_t size) {
    return inner == 1 ? four({shape.product(0, axis - 1), shape[axis - 1], size}) : four({outer, size, inner});
  };
  OpList list(edit, edit.tensor(y).name);
  std::vector<std::int32_t> parts;
  for (const std::int32_t input : op.inputs) {
    if (input < 0 || edit.is_constant(input) || !edit.affine(input) || outer * inner < 1) return false;
    const std::int64_t own = edit.shape(input).elements() / (outer * inner);
    parts.push_back(list.reshape(input, flat_with(own)));
  }
  const ir::Shape flat = flat_with(shape[axis]);
  const int flat_axis = inner == 1 ? 3 : 2;
  list.reshape(list.concatenation(parts, flat_axis, list.tensor_like(y, flat)), shape, y);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, "RESHAPE");
}

// Runs of dimensions that are not repeated, and those that are.
bool tile(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const ir::Shape shape = edit.shape(op.inputs[0]);
  const ir::Shape result = edit.shape(op.outputs[0]);
  if (result.rank() != shape.rank()) return false;
  ir::Shape flat;
  std::vector<std::int64_t> times;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 1 || result[d] % shape[d] != 0) return false;
    const std::int64_t count = result[d] / shape[d];
    if (shape[d] == 1 && count == 1) continue;
    if (count == 1 && !times.empty() && times.back() == 1) {
      flat[flat.rank() - 1] *= shape[d];
    } else {
      flat.push_back(shape[d]);
      times.push_back(count);
    }
  }
  if (flat.rank() > kMostGroups) return false;
  ir::Shape from, to;
  std::vector<std::int64_t> all;
  for (int d = flat.rank(); d < 4; ++d) {
    from.push_back(1);
    to.push_back(1);
    all.push_back(1);
  }
  for (int d = 0; d < flat.rank(); ++d) {
    from.push_back(flat[d]);
    to.push_back(static_cast<std::int32_t>(flat[d] * times[static_cast<std::size_t>(d)]));
    all.push_back(times[static_cast<std::size_t>(d)]);
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t repeated = list.tile(list.reshape(op.inputs[0], from), all);
  list.reshape(repeated, edit.shape(op.outputs[0]), op.outputs[0]);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, "RESHAPE");
}

// Runs of dimensions that are kept as a whole, and those that are cut.
bool slice(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const ir::Shape from = edit.shape(op.inputs[0]), to = edit.shape(op.outputs[0]);
  const auto begins = edit.ints(op.inputs[1]);
  if (!begins || static_cast<int>(begins->size()) != from.rank() || to.rank() != from.rank()) return false;
  if (!edit.same_quantization(op.inputs[0], op.outputs[0])) return false;
  ir::Shape flat, part;
  std::vector<std::int64_t> first;
  bool joins = false;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == 1) continue;
    const bool is_whole = to[d] == from[d];
    if (is_whole && joins) {
      flat[flat.rank() - 1] *= from[d];
      part[part.rank() - 1] *= from[d];
    } else {
      flat.push_back(from[d]);
      part.push_back(to[d]);
      first.push_back((*begins)[static_cast<std::size_t>(d)]);
    }
    joins = is_whole;
  }
  if (flat.rank() > kMostGroups) return false;
  ir::Shape all, box;
  std::vector<std::int64_t> at;
  for (int d = flat.rank(); d < 4; ++d) {
    all.push_back(1);
    box.push_back(1);
    at.push_back(0);
  }
  for (int d = 0; d < flat.rank(); ++d) {
    all.push_back(flat[d]);
    box.push_back(part[d]);
    at.push_back(first[static_cast<std::size_t>(d)]);
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t cut = list.slice_box(list.reshape(op.inputs[0], all), at, box);
  list.reshape(cut, to, op.outputs[0]);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, "RESHAPE");
}

// Neighbouring dimensions that are reduced together, what is before and what is behind them.
bool reduction(GraphEdit& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape shape = edit.shape(op.inputs[0]);
  const auto axes = edit.ints(op.inputs[1]);
  if (!axes || axes->empty()) return false;
  int first = shape.rank(), last = -1;
  std::int64_t count = 1;
  for (std::int64_t axis : *axes) {
    if (axis < 0) axis += shape.rank();
    if (axis < 0 || axis >= shape.rank()) return false;
    first = std::min(first, static_cast<int>(axis));
    last = std::max(last, static_cast<int>(axis));
    count *= shape[static_cast<int>(axis)];
  }
  if (count != shape.product(first, last + 1)) return false;  // others between them, or one twice
  const std::int64_t outer = shape.product(0, first), inner = shape.product(last + 1, shape.rank());
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int64_t axis = 2;
  op.inputs = {list.reshape(op.inputs[0], four({outer, count, inner})), list.int_vector({&axis, 1})};
  op.attributes.set("keep_dims", true);
  return replace(edit, index, list, std::move(op), {four({outer, 1, inner})});
}

// A RESHAPE of a RESHAPE whose result the chip would refuse.
bool reshape(GraphEdit& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const std::int32_t before = edit.producer(op.inputs[0]);
  if (before < 0 || edit.op(before).type != "RESHAPE") return false;
  if (edit.fits(before) && !has_too_many(edit.shape(op.inputs[0]))) return false;
  const std::int32_t x = edit.op(before).inputs[0];
  if (!edit.same_quantization(x, op.outputs[0]) || !edit.is_static(x)) return false;
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  list.reshape(x, edit.shape(op.outputs[0]), op.outputs[0]);
  edit.commit_anyway(index, list.take(), "one with the RESHAPE before it");
  return true;
}

// Its first dimension is that of a batch of inputs: several images are no dimension of one, and are left to
// `unroll-batch`.
bool is_batch(const GraphEdit& edit, std::int32_t tensor) {
  const ir::Shape& shape = edit.shape(tensor);
  if (shape.rank() == 0 || shape[0] == 1) return false;
  return std::any_of(edit.graph().inputs.begin(), edit.graph().inputs.end(), [&](std::int32_t input) {
    return edit.shape(input).rank() > 1 && edit.shape(input)[0] == shape[0];
  });
}

bool at(GraphEdit& edit, std::int32_t index) {
  const std::string type = edit.op(index).type;
  if (!edit.is_sound(index) || edit.op(index).is_custom()) return false;
  if (type == "RESHAPE") return reshape(edit, index);
  const ir::Operator& op = edit.op(index);
  const auto has_many = [&](std::int32_t tensor) { return tensor >= 0 && has_too_many(edit.shape(tensor)); };
  const auto is_deep = [&](std::int32_t tensor) {
    return tensor >= 0 && (is_too_deep(edit.shape(tensor)) || has_too_many(edit.shape(tensor)));
  };
  const bool is_split = type == "SPLIT";
  if (!is_split && std::none_of(op.outputs.begin(), op.outputs.end(), is_deep) &&
      std::none_of(op.inputs.begin(), op.inputs.end(), is_deep)) {
    return false;
  }
  const std::int32_t x = op.inputs[is_split ? 1 : 0];
  if (!edit.affine(x) || !edit.affine(op.outputs[0]) || is_batch(edit, x)) return false;
  const bool has_code = std::none_of(op.outputs.begin(), op.outputs.end(), has_many) && !has_many(x);
  if (has_code && edit.fits(index)) return false;
  if (is_split) return split(edit, index);
  if (type == "BATCH_MATMUL") return matmul(edit, index);
  if (type == "SLICE") return slice(edit, index);
  if (type == "MEAN" || type == "SUM" || type == "REDUCE_MAX" || type == "REDUCE_MIN") return reduction(edit, index);
  if (type == "CONCATENATION" || type == "PACK") return concatenation(edit, index);
  if (type == "TILE" || type == "BROADCAST_TO") return tile(edit, index);
  if (is_elementwise(op, 1) || is_by_rows(op)) return unary(edit, index);
  if (is_elementwise(op, 2)) return binary(edit, index);
  return false;
}

}  // namespace

extern const Rewrite leading_axes_rewrite;
constinit const Rewrite leading_axes_rewrite = {
    .info = {.name = "leading-axes",
             .summary = "Operators on tensors of many dimensions (heads and windows of attention) work on as few as "
                        "they need.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

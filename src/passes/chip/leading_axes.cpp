// SPDX-License-Identifier: Apache-2.0
// Operators on tensors of more dimensions than the chip takes (three, with a batch of 1 before them), which treat
// neighbouring dimensions alike, work on fewer: attention of several heads or windows, [3, heads, tokens, channels].
//
// For each kind of operator its dimensions fall into groups: a SPLIT has those before its axis, the axis, and those
// behind it; a product of matrices has the batches, rows and columns; a sum has runs of dimensions that both operands
// have or that one of them repeats. Each group becomes one dimension, with RESHAPEs around that move nothing. RESHAPEs
// that follow each other then become one, so that no tensor of many dimensions is left.
#include <algorithm>
#include <array>

#include "ops/registry.h"
#include "passes/chip/leading_axes.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// Operators on rows of the last dimension, each row by itself.
bool is_by_rows(const ir::Operator& op) { return op.type == Op::SOFTMAX || op.type == Op::L2_NORMALIZATION; }

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

bool unary(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape shape = edit.shape(op.inputs[0]);
  if (edit.shape(op.outputs[0]) != shape || shape.rank() < 3) return false;
  const ir::Shape flat = four({shape.product(0, shape.rank() - 2), shape.last(1), shape.last()});
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  op.inputs[0] = list.reshape(op.inputs[0], flat);
  return replace_on_fewer(edit, index, list, std::move(op), {flat});
}

// A dimension of an operand from the front, seen with as many as the result has.
std::int32_t dimension(const ir::Shape& shape, int rank, int d) {
  const int own = d - (rank - shape.rank());
  return own < 0 ? 1 : shape[own];
}

// Runs of dimensions along which each operand has all, or one.
bool binary(ChipGraph& edit, std::int32_t index) {
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
  return replace_on_fewer(edit, index, list, std::move(op), {result});
}

// Where the second operand is the same for the first batches of the first operand, these are rows: [g, n, m, k] times
// [1, n, k, v] is [n, g * m, k] times [n, k, v] (lambda layers: all heads share what stands for positions).
bool matmul_of_shared(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape a = edit.shape(op.inputs[0]), b = edit.shape(op.inputs[1]), out = edit.shape(op.outputs[0]);
  if (op.attributes.get_bool("adj_x") || edit.is_constant(op.inputs[0]) || edit.is_constant(op.inputs[1])) return false;
  const int rank = out.rank();
  if (a.rank() != rank || b.rank() > rank || rank < 3) return false;
  int shared = 0;
  while (shared < rank - 2 && dimension(b, rank, shared) == 1) ++shared;
  for (int d = shared; d < rank - 2; ++d) {
    if (dimension(b, rank, d) != a[d]) return false;
  }
  const auto g = static_cast<std::int32_t>(a.product(0, shared));
  const auto n = static_cast<std::int32_t>(a.product(shared, rank - 2));
  const std::int32_t m = a.last(1), k = a.last();
  if (g == 1 || n == 1) return false;
  constexpr std::array<int, 4> kSwapped = {1, 0, 2, 3};
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t turned = list.transpose(list.reshape(op.inputs[0], {g, n, m, k}), kSwapped);
  op.inputs[0] = list.reshape(turned, {1, n, g * m, k});
  op.inputs[1] = list.reshape(op.inputs[1], {1, n, b.last(1), b.last()});
  const std::int32_t wanted = op.outputs[0];
  op.outputs[0] = list.tensor_like(wanted, {1, n, g * m, out.last()});
  std::vector<ir::Operator> ops = list.take();
  const std::int32_t product = op.outputs[0];
  ops.push_back(std::move(op));
  OpList behind(edit, edit.tensor(wanted).name);
  behind.reshape(behind.transpose(behind.reshape(product, {n, g, m, out.last()}), kSwapped), out, wanted);
  for (ir::Operator& last : behind.take()) ops.push_back(std::move(last));
  edit.commit_anyway(index, std::move(ops), "the same with shared batches as rows");
  return true;
}

bool matmul(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape a = edit.shape(op.inputs[0]), b = edit.shape(op.inputs[1]), out = edit.shape(op.outputs[0]);
  if (a.rank() < 2 || b.rank() < 2) return false;
  if (matmul_of_shared(edit, index)) return true;
  const std::int64_t batches = out.product(0, out.rank() - 2);
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  for (std::size_t k = 0; k < 2; ++k) {
    const ir::Shape& shape = k == 0 ? a : b;
    const std::int64_t own = shape.product(0, shape.rank() - 2);
    if ((own != batches && own != 1) || edit.is_constant(op.inputs[k])) return false;
    op.inputs[k] = list.reshape(op.inputs[k], four({own, shape.last(1), shape.last()}));
  }
  return replace_on_fewer(edit, index, list, std::move(op), {four({batches, out.last(1), out.last()})});
}

// The axis and what is before and behind it; where nothing is before, the axis and the next are one.
bool split(ChipGraph& edit, std::int32_t index) {
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
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, Op::RESHAPE);
}

// Three groups: dimensions before the axis, the axis, and those behind it. PACK has a dimension of its own for the
// axis.
bool concatenation(ChipGraph& edit, std::int32_t index) {
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
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, Op::RESHAPE);
}

// Dimensions with others between them that stay (groups of GroupNormalization of Keras): they are brought to the front.
bool reduction_of_several(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const ir::Shape shape = edit.shape(op.inputs[0]);
  std::vector<bool> is_reduced(static_cast<std::size_t>(shape.rank()), false);
  const auto axes = edit.ints(op.inputs[1]);
  for (const std::int64_t axis : *axes) {
    is_reduced[at(axis < 0 ? axis + shape.rank() : axis)] = true;
  }
  std::vector<int> order;
  std::int64_t count = 1, kept = 1;
  for (const bool wanted : {true, false}) {
    for (int d = 0; d < shape.rank(); ++d) {
      if (is_reduced[at(d)] != wanted) continue;
      order.push_back(d);
      (wanted ? count : kept) *= shape[d];
    }
  }
  if (shape.rank() > 6 || edit.shape(op.outputs[0]).elements() != kept) return false;
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t front = list.transpose(op.inputs[0], order);
  const std::int64_t axis = 2;
  op.inputs = {list.reshape(front, four({1, count, kept})), list.int_vector({&axis, 1})};
  op.attributes.set("keep_dims", true);
  std::vector<ir::Operator> ops = list.take();
  const std::int32_t wanted = op.outputs[0];
  OpList behind(edit, edit.tensor(wanted).name);
  op.outputs[0] = behind.tensor_like(wanted, four({1, 1, kept}));
  behind.reshape(op.outputs[0], edit.shape(wanted), wanted);
  ops.push_back(std::move(op));
  for (ir::Operator& last : behind.take()) ops.push_back(std::move(last));
  edit.commit_anyway(index, std::move(ops), "the same with what is reduced in front");
  return true;
}

// Neighbouring dimensions that are reduced together, what is before and what is behind them.
bool reduction(ChipGraph& edit, std::int32_t index) {
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
  if (count != shape.product(first, last + 1)) return reduction_of_several(edit, index);  // or one axis twice
  const std::int64_t outer = shape.product(0, first), inner = shape.product(last + 1, shape.rank());
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int64_t axis = 2;
  op.inputs = {list.reshape(op.inputs[0], four({outer, count, inner})), list.int_vector({&axis, 1})};
  op.attributes.set("keep_dims", true);
  return replace_on_fewer(edit, index, list, std::move(op), {four({outer, 1, inner})});
}

// A RESHAPE of a RESHAPE whose result the chip would refuse.
bool reshape(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const std::int32_t before = edit.producer(op.inputs[0]);
  if (before < 0 || edit.op(before).type != Op::RESHAPE) return false;
  if (edit.fits(before) && !has_too_many(edit.shape(op.inputs[0]))) return false;
  const std::int32_t x = edit.op(before).inputs[0];
  if (!edit.same_quantization(x, op.outputs[0]) || !edit.is_static(x)) return false;
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  list.reshape(x, edit.shape(op.outputs[0]), op.outputs[0]);
  edit.commit_anyway(index, list.take(), "one with the RESHAPE before it");
  return true;
}

bool leading_axes_at(ChipGraph& edit, std::int32_t index) {
  const std::string type = edit.op(index).type;
  if (!edit.is_sound(index) || edit.op(index).is_custom()) return false;
  if (type == Op::RESHAPE) return reshape(edit, index);
  const ir::Operator& op = edit.op(index);
  const auto has_many = [&](std::int32_t tensor) { return tensor >= 0 && has_too_many(edit.shape(tensor)); };
  const auto is_deep = [&](std::int32_t tensor) {
    return tensor >= 0 && (is_too_deep(edit.shape(tensor)) || has_too_many(edit.shape(tensor)));
  };
  const bool is_split = type == Op::SPLIT;
  // They can be refused for what they do along the first dimension, however few there are.
  const bool is_refused_early = is_split || type == Op::PAD || ops::form_of(op) == ops::Form::kReduction;
  if (!is_refused_early && std::none_of(op.outputs.begin(), op.outputs.end(), is_deep) &&
      std::none_of(op.inputs.begin(), op.inputs.end(), is_deep)) {
    return false;
  }
  const std::int32_t x = op.inputs[is_split ? 1 : 0];
  if (!edit.affine(x) || !edit.affine(op.outputs[0])) return false;
  // Images of a batch that unroll-batch took apart are joined again in the batch's dimension.
  if (edit.is_batch_of_inputs(x) || edit.is_batch_of_inputs(op.outputs[0])) return false;
  const bool has_code = std::none_of(op.outputs.begin(), op.outputs.end(), has_many) && !has_many(x);
  if (has_code && edit.fits(index)) return false;
  if (is_split) return split(edit, index);
  if (type == Op::BATCH_MATMUL) return matmul(edit, index);
  if (type == Op::SLICE || type == Op::STRIDED_SLICE) return slice_on_fewer(edit, index);
  if (type == Op::PAD) return pad_on_fewer(edit, index);
  if (ops::form_of(op) == ops::Form::kReduction) return reduction(edit, index);
  if (type == Op::CONCATENATION || type == Op::PACK) return concatenation(edit, index);
  if (type == Op::TILE || type == Op::BROADCAST_TO) return tile_on_fewer(edit, index);
  if (ops::is_elementwise_over(op, 1) || is_by_rows(op)) return unary(edit, index);
  if (ops::is_elementwise_over(op, 2)) return binary(edit, index);
  return false;
}

}  // namespace

constinit const Pass leading_axes_chip_pass = {
    .name = "leading-axes",
    .summary =
        "Operators on tensors of many dimensions (heads and windows of attention) work on as few as "
        "they need.",
    .at_on_chip = leading_axes_at};

}  // namespace reef::passes

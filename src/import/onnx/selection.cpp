// SPDX-License-Identifier: Apache-2.0
// Nodes that choose elements by their values, and running sums.
#include "import/onnx/converter.h"
#include "import/onnx/shared_parts.h"

namespace reef::import {

Status convert_cumsum(NodeContext& ctx, GraphBuilder& b) {
  REEF_REQUIRE(b.elements(ctx.in(1)) == 1, "axis has {} elements", b.elements(ctx.in(1)));
  Id axis = cast(b, reshape(b, ctx.in(1), {}), ir::DataType::kInt32);
  if (b.is_known(axis)) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(1));
    REEF_ASSIGN_OR_RETURN(const int from_start, ctx.axis(given[0], b.rank(ctx.in(0))));
    axis = b.scalar(ir::DataType::kInt32, from_start);
  }
  ir::Attributes attributes;
  attributes.set("exclusive", ctx.int_attribute("exclusive", 0) != 0);
  attributes.set("reverse", ctx.int_attribute("reverse", 0) != 0);
  const Id x = widened(b, ctx.in(0));
  const Id sums = b.emit(Op::CUMSUM, {x, axis}, b.type(x), std::move(attributes));
  return ctx.give(cast(b, sums, b.type(ctx.in(0))));
}

Status convert_top_k(NodeContext& ctx, GraphBuilder& b) {
  std::int64_t k = ctx.int_attribute("k", 0);
  const bool is_open = ctx.is_open(1);
  if (!is_open && (ctx.opset() >= 10 || ctx.has(1))) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(1));
    REEF_REQUIRE(given.size() == 1, "k has {} elements", given.size());
    k = given[0];
  }
  Id x = widened(b, ctx.in(0));
  const int rank = b.rank(x);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", -1), rank));
  REEF_REQUIRE(k >= 0 && k <= b.dim(x, axis), "k is {}, but axis {} has {} elements", k, axis, b.dim(x, axis));
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i == axis ? rank - 1 : i == rank - 1 ? axis : i);
  const bool is_largest = ctx.int_attribute("largest", 1) != 0;
  x = transpose(b, x, order);
  if (!is_largest) x = unary(b, Op::NEG, x);
  const Id count = is_open ? cast(b, reshape(b, ctx.in(1), {}), ir::DataType::kInt32)
                           : b.scalar(ir::DataType::kInt32, static_cast<double>(k));
  std::vector<Id> best = b.emit_many(Op::TOPK_V2, {x, count}, {b.type(x), ir::DataType::kInt32});
  if (!is_largest) best[0] = unary(b, Op::NEG, best[0]);
  ctx.out(0, cast(b, transpose(b, best[0], order), b.type(ctx.in(0))));
  ctx.out(1, {cast(b, transpose(b, best[1], order), ir::DataType::kInt64), onnx::ElementType::kInt64, {}});
  return ok_status();
}

// Coordinates of elements that are not 0, one column each. How many there are is known only while the model runs.
Status convert_non_zero(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0);
  if (b.rank(x) == 0) x = reshape(b, x, {1});
  if (b.type(x) != ir::DataType::kBool) {
    x = widened(b, x);
    x = compare(b, Op::NOT_EQUAL, x, b.scalar(b.type(x), 0));
  }
  const Id rows = b.emit(Op::WHERE, {x}, ir::DataType::kInt64);
  return ctx.give(
      {b.emit(Op::TRANSPOSE, {rows, b.ints(Dims{1, 0})}, ir::DataType::kInt64), onnx::ElementType::kInt64, {}});
}

// Slices along an axis (or elements of the whole) where the condition holds.
Status convert_compress(NodeContext& ctx, GraphBuilder& b) {
  Id x = ctx.in(0);
  int axis = 0;
  if (ctx.has_attribute("axis")) {
    REEF_ASSIGN_OR_RETURN(axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(x)));
  } else {
    x = reshape(b, x, {b.elements(x)});
  }
  const Id rows = b.emit(Op::WHERE, {ctx.in(1)}, ir::DataType::kInt64);
  const Id indices = b.emit(Op::RESHAPE, {rows, b.ints(Dims{-1})}, ir::DataType::kInt64);
  return ctx.give(gather(b, x, indices, axis));
}

Status convert_reverse_sequence(NodeContext& ctx, GraphBuilder& b) {
  ir::Attributes attributes;
  attributes.set("seq_dim", ctx.int_attribute("time_axis", 0));
  attributes.set("batch_dim", ctx.int_attribute("batch_axis", 1));
  const Id lengths = cast(b, ctx.in(1), ir::DataType::kInt32);
  return ctx.give(b.emit(Op::REVERSE_SEQUENCE, {ctx.in(0), lengths}, b.type(ctx.in(0)), std::move(attributes)));
}

namespace {

// The determinant of [..., n, n] by its first row.
Id determinant(GraphBuilder& b, Id x) {
  const int rank = b.rank(x), rows = rank - 2, columns = rank - 1;
  const std::int64_t n = b.dim(x, columns);
  if (n == 1) return x;
  Id sum = kAbsent;
  const Id below = slice_axis(b, x, rows, 1, n - 1), first = slice_axis(b, x, rows, 0, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<Id> parts;
    if (i > 0) parts.push_back(slice_axis(b, below, columns, 0, i));
    if (i + 1 < n) parts.push_back(slice_axis(b, below, columns, i + 1, n - i - 1));
    const Id minor = mul(b, slice_axis(b, first, columns, i, 1), determinant(b, concat(b, parts, columns)));
    sum = sum == kAbsent ? minor : i % 2 == 0 ? add(b, sum, minor) : sub(b, sum, minor);
  }
  return sum;
}

}  // namespace

Status convert_det(NodeContext& ctx, GraphBuilder& b) {
  const ir::Shape shape = b.shape(ctx.in(0));
  REEF_REQUIRE(shape.rank() >= 2 && shape.last(0) == shape.last(1) && shape.last() >= 1, "the input {} is no matrix",
               shape.to_string());
  if (shape.last() > 5) return unsupported("determinants of more than 5 rows are not converted");
  Dims dims = dims_of(shape);
  dims.resize(dims.size() - 2);
  return ctx.give(reshape(b, determinant(b, ctx.in(0)), dims));
}

}  // namespace reef::import

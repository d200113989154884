// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, which are an attribute or, since opset 13 (ReduceSum) and 18, an input.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "import/onnx/converters.h"

namespace reef::import {
namespace {

struct Reduction {
  Id x = kAbsent;
  Dims axes;
  bool keep_dims = true;
  bool is_nothing = false;  // no axes, and none means none
  Id open_axes = kAbsent;   // axes that are known only while the model runs: int32 [n]
};

Result<Reduction> read_reduction(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  Reduction r;
  r.x = ctx.in(0);
  r.keep_dims = ctx.int_attribute("keepdims", 1) != 0;
  GraphBuilder& b = ctx.b;
  const int rank = b.rank(r.x);
  Dims given = ctx.ints_attribute("axes");
  if (ctx.has(1) && b.is_shape_known(ctx.in(1)) && b.elements(ctx.in(1)) > 0) {
    if (ctx.is_open(1)) {
      r.open_axes = cast(b, ctx.in(1), ir::DataType::kInt32);
      return r;
    }
    REEF_ASSIGN_OR_RETURN(given, ctx.ints(1));
  }
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, rank));
  r.axes.assign(axes.begin(), axes.end());
  if (!r.axes.empty()) return r;
  r.is_nothing = ctx.int_attribute("noop_with_empty_axes", 0) != 0;
  for (int i = 0; i < rank; ++i) r.axes.push_back(i);
  return r;
}

Id apply(GraphBuilder& b, OpName op, Id x, const Reduction& r) {
  if (r.open_axes != kAbsent) {
    ir::Attributes attributes;
    attributes.set("keep_dims", r.keep_dims);
    return b.emit(op, {x, r.open_axes}, b.type(x), std::move(attributes));
  }
  if (r.is_nothing || r.axes.empty()) return x;
  return reduce(b, op, x, r.axes, r.keep_dims);
}

using Function = Id (*)(GraphBuilder&, Id);
Id same(GraphBuilder&, Id x) { return x; }
Id magnitude(GraphBuilder& b, Id x) {
  return is_float(b.type(x)) ? unary(b, Op::ABS, x) : maximum(b, x, subtract_from(b, 0, x));
}
Id square(GraphBuilder& b, Id x) { return mul(b, x, x); }
Id root(GraphBuilder& b, Id x) { return unary(b, Op::SQRT, x); }
Id logarithm(GraphBuilder& b, Id x) { return unary(b, Op::LOG, x); }

// after(op(before(x)))
Status convert_reduction(NodeContext& ctx, OpName op, Function before = same, Function after = same) {
  REEF_ASSIGN_OR_RETURN(const Reduction r, read_reduction(ctx));
  GraphBuilder& b = ctx.b;
  Id x = widened(b, r.x);
  if (after != same) x = cast(b, x, ir::DataType::kFloat32);
  return ctx.give(cast(b, after(b, apply(b, op, before(b, x), r)), b.type(r.x)));
}

// Whether a constant with infinite elements, such as a mask, leads to x.
bool may_be_infinite(GraphBuilder& b, Id x) {
  constexpr std::size_t kMostSeen = 256;
  constexpr std::int64_t kMostElements = 1 << 16;
  std::vector<Id> open = {x};
  std::set<std::int32_t> seen = {x};
  while (!open.empty() && seen.size() < kMostSeen) {
    const Id id = open.back();
    open.pop_back();
    if (b.is_constant(id) && is_float(b.type(id)) && b.elements(id) <= kMostElements) {
      const std::vector<float> values = b.float_values(id).value_or(std::vector<float>{});
      if (std::any_of(values.begin(), values.end(), [](float each) { return std::isinf(each); })) return true;
    }
    if (b.is_constant(id) || b.producer(id) < 0) continue;
    for (const std::int32_t input : b.op(b.producer(id)).inputs) {
      if (input >= 0 && seen.insert(input).second) open.push_back(Id{input});
    }
  }
  return false;
}

// TFLite starts with the lowest (highest) float, which is then the largest (smallest) of nothing but infinite elements.
Status convert_extreme(NodeContext& ctx, OpName op, bool is_largest) {
  REEF_ASSIGN_OR_RETURN(const Reduction r, read_reduction(ctx));
  GraphBuilder& b = ctx.b;
  Id y = apply(b, op, widened(b, r.x), r);
  if (is_float(b.type(r.x)) && may_be_infinite(b, r.x)) {
    const double start = is_largest ? std::numeric_limits<float>::lowest() : std::numeric_limits<float>::max();
    const double infinity = std::numeric_limits<double>::infinity();
    const Id is_start =
        compare(b, is_largest ? Op::LESS_EQUAL : Op::GREATER_EQUAL, y, b.scalar(ir::DataType::kFloat32, start));
    y = select(b, is_start, b.scalar(ir::DataType::kFloat32, is_largest ? -infinity : infinity), y);
  }
  return ctx.give(cast(b, y, b.type(r.x)));
}

}  // namespace

Status convert_reduce_sum(NodeContext& ctx, GraphBuilder&) { return convert_reduction(ctx, Op::SUM); }
Status convert_reduce_mean(NodeContext& ctx, GraphBuilder&) { return convert_reduction(ctx, Op::MEAN); }
Status convert_reduce_prod(NodeContext& ctx, GraphBuilder&) { return convert_reduction(ctx, Op::REDUCE_PROD); }
Status convert_reduce_max(NodeContext& ctx, GraphBuilder&) { return convert_extreme(ctx, Op::REDUCE_MAX, true); }
Status convert_reduce_min(NodeContext& ctx, GraphBuilder&) { return convert_extreme(ctx, Op::REDUCE_MIN, false); }
Status convert_reduce_l1(NodeContext& ctx, GraphBuilder&) { return convert_reduction(ctx, Op::SUM, magnitude); }
Status convert_reduce_l2(NodeContext& ctx, GraphBuilder&) { return convert_reduction(ctx, Op::SUM, square, root); }
Status convert_reduce_sum_square(NodeContext& ctx, GraphBuilder&) { return convert_reduction(ctx, Op::SUM, square); }
Status convert_reduce_log_sum(NodeContext& ctx, GraphBuilder&) {
  return convert_reduction(ctx, Op::SUM, same, logarithm);
}

// log(sum(exp(x))), with the largest element taken out so that exp stays small.
Status convert_reduce_log_sum_exp(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(Reduction r, read_reduction(ctx));
  if (r.open_axes != kAbsent) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(1));
    return unsupported("its axes are not known, but {} were given", given.size());
  }
  const Id x = cast(b, r.x, ir::DataType::kFloat32);
  if (r.is_nothing || r.axes.empty()) return ctx.give(r.x);
  const Id largest = reduce(b, Op::REDUCE_MAX, x, r.axes, true);
  const Id sum = reduce(b, Op::SUM, unary(b, Op::EXP, sub(b, x, largest)), r.axes, r.keep_dims);
  const Id offset = r.keep_dims ? largest : reduce(b, Op::REDUCE_MAX, x, r.axes, false);
  return ctx.give(cast(b, add(b, unary(b, Op::LOG, sum), offset), b.type(r.x)));
}

Status convert_arg(NodeContext& ctx, GraphBuilder& b, OpName op) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  Id x = widened(b, ctx.in(0));
  if (b.type(x) == ir::DataType::kInt64) x = cast(b, x, ir::DataType::kInt32);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(x)));
  const bool wants_last = ctx.int_attribute("select_last_index", 0) != 0;
  if (wants_last) x = reverse(b, x, axis);
  ir::Attributes attributes;
  attributes.set("output_type", ir::EnumName{"INT64"});
  Id index = b.emit(op, {x, b.scalar(ir::DataType::kInt32, axis)}, ir::DataType::kInt64, std::move(attributes));
  if (wants_last) index = subtract_from(b, b.dim(x, axis) - 1, index);
  if (ctx.int_attribute("keepdims", 1) != 0) {
    Dims dims = dims_of(b.shape(x));
    dims[at(axis)] = 1;
    index = reshape(b, index, dims);
  }
  Value value;
  value.id = index;
  value.type = onnx::ElementType::kInt64;
  return ctx.give(value);
}

}  // namespace reef::import

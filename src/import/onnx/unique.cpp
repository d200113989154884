// SPDX-License-Identifier: Apache-2.0
// Unique: the different elements, or slices along an axis, sorted or in order of first appearance.
//
// TFLite's UNIQUE gives neither a sorted order nor slices, so that everything is compared with everything: n^2 numbers
// for n elements, n^2 m for slices of m. How many different ones there are is known only while the model runs, and with
// it the sizes of three of the four results.
#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostUniqueComparisons = std::int64_t{1} << 24;

// The slices and how they compare. Matrices are [i, j].
struct Comparison {
  std::int64_t count = 0;
  Id is_equal = kAbsent;  // int32: slice i equals slice j
  Id is_above = kAbsent;  // int32: slice i comes after slice j in lexicographic order
};

Comparison compare_all(GraphBuilder& b, Id rows) {
  const std::int64_t n = b.dim(rows, 0), m = b.dim(rows, 1);
  const Id left = reshape(b, rows, {n, 1, m}), right = reshape(b, rows, {1, n, m});
  const Id differs = cast(b, compare(b, Op::NOT_EQUAL, left, right), ir::DataType::kInt32);
  const Id above = cast(b, compare(b, Op::GREATER, left, right), ir::DataType::kInt32);
  Comparison result;
  result.count = n;
  result.is_equal = subtract_from(b, 1, reduce(b, Op::REDUCE_MAX, differs, {2}, false));
  if (m == 1) {
    result.is_above = reshape(b, above, {n, n});
    return result;
  }
  // The first place where they differ decides.
  ir::Attributes attributes;
  attributes.set("output_type", ir::EnumName{"INT32"});
  const Id place =
      b.emit(Op::ARG_MAX, {differs, b.scalar(ir::DataType::kInt32, 2)}, ir::DataType::kInt32, std::move(attributes));
  Dims numbers;
  for (std::int64_t i = 0; i < m; ++i) numbers.push_back(i);
  const Id is_place = compare(b, Op::EQUAL, reshape(b, place, {n, n, 1}), b.ints(numbers, shape_from({1, 1, m})));
  result.is_above = reduce(b, Op::SUM, mul(b, above, cast(b, is_place, ir::DataType::kInt32)), {2}, false);
  return result;
}

// int32 [n, n], 1 where j < i.
Id earlier(GraphBuilder& b, std::int64_t n) {
  Dims mask;
  for (std::int64_t i = 0; i < n * n; ++i) mask.push_back(i % n < i / n ? 1 : 0);
  return b.ints(mask, shape_from({n, n}));
}

Id counted(GraphBuilder& b, Id x, Id y) { return reduce(b, Op::SUM, mul(b, x, y), {1}, false); }

struct Ranks {
  Id is_first = kAbsent;  // int32 [n]: no equal slice comes before it
  Id rank = kAbsent;      // int32 [n]: which of the different slices, in the order wanted, it is
};

Ranks ranks_of(GraphBuilder& b, const Comparison& all, bool is_sorted) {
  const std::int64_t n = all.count;
  Ranks ranks;
  const Id repeats = counted(b, all.is_equal, earlier(b, n));
  const Id is_first = compare(b, Op::EQUAL, repeats, b.scalar(ir::DataType::kInt32, 0));
  ranks.is_first = cast(b, is_first, ir::DataType::kInt32);
  const Id firsts = reshape(b, ranks.is_first, {1, n});
  if (is_sorted) {
    ranks.rank = counted(b, all.is_above, firsts);
  } else {
    // As many as there are first ones before the first that is equal.
    const Id before = counted(b, earlier(b, n), firsts);
    const Id own = mul(b, all.is_equal, firsts);
    ranks.rank = counted(b, own, reshape(b, before, {1, n}));
  }
  return ranks;
}

}  // namespace

Status convert_unique(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  int axis = 0;
  std::vector<int> order;
  Id moved = x;  // the axis first
  if (ctx.has_attribute("axis")) {
    REEF_ASSIGN_OR_RETURN(axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(x)));
    order = {axis};
    for (int i = 0; i < b.rank(x); ++i) {
      if (i != axis) order.push_back(i);
    }
    moved = transpose(b, x, order);
  } else {
    moved = reshape(b, x, {b.elements(x)});
  }
  const std::int64_t n = b.dim(moved, 0), m = n == 0 ? 0 : b.elements(x) / n;
  if (n < 1 || m < 1 || n > (1 << 12) || n * n * m > kMostUniqueComparisons) {
    return unsupported("{} slices of {} elements are compared with each other, which is too much", n, m);
  }
  const Id numbers = b.type(moved) == ir::DataType::kBool ? cast(b, moved, ir::DataType::kInt32) : widened(b, moved);
  const Comparison all = compare_all(b, reshape(b, numbers, {n, m}));
  const Ranks ranks = ranks_of(b, all, ctx.int_attribute("sorted", 1) != 0);
  // First ones by rank, the others behind them; then only the first ones.
  const Id key = select(b, compare(b, Op::GREATER, ranks.is_first, b.scalar(ir::DataType::kInt32, 0)),
                        subtract_from(b, static_cast<double>(n), ranks.rank), b.scalar(ir::DataType::kInt32, 0));
  const std::vector<Id> sorted = b.emit_many(Op::TOPK_V2, {key, b.scalar(ir::DataType::kInt32, static_cast<double>(n))},
                                             {ir::DataType::kInt32, ir::DataType::kInt32});
  const Id is_used = compare(b, Op::GREATER, sorted[0], b.scalar(ir::DataType::kInt32, 0));
  const Id where = b.emit(Op::WHERE, {is_used}, ir::DataType::kInt64);
  const Id places = gather(b, sorted[1], b.emit(Op::RESHAPE, {where, b.ints(Dims{-1})}, ir::DataType::kInt64), 0);
  const Id counts = reduce(b, Op::SUM, all.is_equal, {1}, false);
  const auto whole = [&](Id ids) {
    return Value{b.emit(Op::CAST, {ids}, ir::DataType::kInt64), onnx::ElementType::kInt64, {}};
  };
  ctx.out(0, ctx.has_attribute("axis") ? gather(b, x, places, axis) : gather(b, moved, places, 0));
  ctx.out(1, whole(places));
  ctx.out(2, whole(ranks.rank));
  ctx.out(3, whole(gather(b, counts, places, 0)));
  return ok_status();
}

}  // namespace reef::import

// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression: one NON_MAX_SUPPRESSION_V4 for each class of each picture, and their choices put together.
//
// How many boxes are chosen depends on the data. ONNX's result [n, 3] (batch, class, box) therefore has a size that is
// known only while the model runs; TFLite has such tensors, but operators that need sizes cannot follow. With
// ImportOptions::pad_selections it has the largest size instead: unused rows, which come last, are -1, and how many are
// used is an output of its own.
//
// Differences of the kernels: TFLite leaves out boxes from the IoU threshold on, ONNX those above it, so that the next
// larger number is given; at a threshold of 1, where nothing is to be left out, equal boxes still are. Boxes without
// area are chosen repeatedly (src/ops/non_max_suppression.cpp). Boxes of equal score may come in another order.
#include <limits>

#include "import/onnx/converter.h"

namespace reef::import {
namespace {

constexpr std::int64_t kMostSearches = 4096;  // classes times pictures
constexpr std::int64_t kMostRows = std::int64_t{1} << 22;

struct Suppression {
  std::int64_t batches = 0, classes = 0, boxes = 0;
  std::int64_t most = 0;                    // boxes chosen of one class, at most
  Id limit = kAbsent;                       // the same, where it is known only while the model runs: int32 []
  Id iou = kAbsent, score_limit = kAbsent;  // float32 []
};

// [n, 4] of (x, y, width, height) with x, y in the middle -> corners (y, x, y, x).
Id corners_of(GraphBuilder& b, Id boxes) {
  const std::vector<Id> parts = split_even(b, boxes, 1, 4);
  const Id half_width = mul(b, parts[2], 0.5), half_height = mul(b, parts[3], 0.5);
  return concat(b,
                {sub(b, parts[1], half_height), sub(b, parts[0], half_width), add(b, parts[1], half_height),
                 add(b, parts[0], half_width)},
                1);
}

// The smallest float above x, at least the smallest normal one and at most 1. For x = m * 2^e with 1 <= m < 2, what is
// added is 0.75 to 1.5 of the distance to the next float, which rounds to one.
Id next_above(GraphBuilder& b, Id x) {
  const Id next = add(b, x, mul(b, x, 0.75 * std::numeric_limits<float>::epsilon()));
  const Id positive = maximum(b, next, b.scalar(ir::DataType::kFloat32, std::numeric_limits<float>::min()));
  return minimum(b, positive, b.scalar(ir::DataType::kFloat32, 1));
}

Result<Suppression> read_suppression(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  Suppression s;
  const ir::Shape boxes = b.shape(ctx.in(0)), scores = b.shape(ctx.in(1));
  REEF_REQUIRE(
      boxes.rank() == 3 && boxes[2] == 4 && scores.rank() == 3 && boxes[0] == scores[0] && boxes[1] == scores[2],
      "boxes {} and scores {} do not fit: [batch, boxes, 4] and [batch, classes, boxes] are needed", boxes.to_string(),
      scores.to_string());
  s.batches = boxes[0], s.boxes = boxes[1], s.classes = scores[1];
  s.most = s.boxes;
  const auto scalar = [&](int input, ir::DataType type) { return cast(b, reshape(b, ctx.in(input), {}), type); };
  for (int i = 2; i <= 4; ++i) {
    REEF_REQUIRE(!ctx.has(i) || b.elements(ctx.in(i)) == 1, "input {} has {} elements", i, b.elements(ctx.in(i)));
  }
  if (!ctx.has(2)) {
    s.most = 0;
  } else if (const auto given = b.int_values(ctx.in(2))) {
    s.most = std::clamp<std::int64_t>((*given)[0], 0, s.boxes);
  } else {
    s.limit = scalar(2, ir::DataType::kInt32);
  }
  s.iou = ctx.has(3) ? scalar(3, ir::DataType::kFloat32) : b.scalar(ir::DataType::kFloat32, 0);
  s.iou = next_above(b, s.iou);
  s.score_limit = ctx.has(4) ? scalar(4, ir::DataType::kFloat32)
                             : b.scalar(ir::DataType::kFloat32, std::numeric_limits<float>::lowest());
  if (s.batches * s.classes > kMostSearches || s.batches * s.classes * s.most > kMostRows) {
    return unsupported("{} classes of {} pictures with up to {} boxes each are too many to convert", s.classes,
                       s.batches, s.most);
  }
  return s;
}

struct Chosen {
  std::vector<Id> boxes;   // int32 [most] of each class of each picture
  std::vector<Id> counts;  // int32 [] of each
};

Chosen search(NodeContext& ctx, const Suppression& s) {
  GraphBuilder& b = ctx.b;
  const bool is_centered = ctx.int_attribute("center_point_box", 0) != 0;
  const Id most = b.scalar(ir::DataType::kInt32, static_cast<double>(s.most));
  Chosen chosen;
  for (std::int64_t batch = 0; batch < s.batches; ++batch) {
    Id boxes = reshape(b, slice_axis(b, ctx.in(0), 0, batch, 1), {s.boxes, 4});
    if (is_centered) boxes = corners_of(b, boxes);
    const Id scores = reshape(b, slice_axis(b, ctx.in(1), 0, batch, 1), {s.classes, s.boxes});
    for (std::int64_t at = 0; at < s.classes; ++at) {
      const Id of_class = reshape(b, slice_axis(b, scores, 0, at, 1), {s.boxes});
      const std::vector<Id> found =
          b.emit_many(Op::NON_MAX_SUPPRESSION_V4, {boxes, of_class, most, s.iou, s.score_limit},
                      {ir::DataType::kInt32, ir::DataType::kInt32});
      chosen.boxes.push_back(found[0]);
      // The first of a longer choice are the shorter choice.
      chosen.counts.push_back(s.limit == kAbsent ? found[1] : minimum(b, found[1], s.limit));
    }
  }
  return chosen;
}

// int64 [batches * classes * most, 3]: batch, class, box.
Id all_rows(GraphBuilder& b, const Suppression& s, const Chosen& chosen) {
  Dims places;
  for (std::int64_t i = 0; i < s.batches * s.classes * s.most; ++i) {
    places.push_back(i / (s.classes * s.most));
    places.push_back(i / s.most % s.classes);
  }
  const auto rows = static_cast<std::int64_t>(places.size() / 2);
  const Id boxes = reshape(b, concat(b, chosen.boxes, 0), {rows, 1});
  return concat(b, {b.ints(places, shape_from({rows, 2}), ir::DataType::kInt64), cast(b, boxes, ir::DataType::kInt64)},
                1);
}

// bool [batches * classes * most]: which of the rows are used.
Id used_rows(GraphBuilder& b, const Suppression& s, const Chosen& chosen) {
  const std::int64_t searches = s.batches * s.classes;
  std::vector<Id> counts;
  for (const Id count : chosen.counts) counts.push_back(reshape(b, count, {1, 1}));
  Dims numbers;
  for (std::int64_t i = 0; i < s.most; ++i) numbers.push_back(i);
  const Id places = b.ints(numbers, shape_from({1, s.most}));
  return reshape(b, compare(b, Op::LESS, places, concat(b, counts, 0)), {searches * s.most});
}

// All rows, those that are used first; the others -1. How many are used becomes an output of the model.
Id padded(NodeContext& ctx, Id rows, Id is_used) {
  GraphBuilder& b = ctx.b;
  const std::int64_t count = b.dim(rows, 0);
  const Id marks = cast(b, is_used, ir::DataType::kInt32);
  // Of equal marks the earlier comes first.
  const std::vector<Id> order =
      b.emit_many(Op::TOPK_V2, {marks, b.scalar(ir::DataType::kInt32, static_cast<double>(count))},
                  {ir::DataType::kInt32, ir::DataType::kInt32});
  const Id sorted = gather(b, rows, order[1], 0);
  const Id keeps = reshape(b, compare(b, Op::GREATER, order[0], b.scalar(ir::DataType::kInt32, 0)), {count, 1});
  ctx.extra_output(reduce(b, Op::SUM, marks, {0}, true), "count");
  return select(b, keeps, sorted, b.scalar(ir::DataType::kInt64, -1));
}

}  // namespace

Status convert_non_max_suppression(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Suppression s, read_suppression(ctx));
  Value result;
  result.type = onnx::ElementType::kInt64;
  if (s.batches * s.classes * s.most == 0) {
    result.id = b.ints(Dims{}, {0, 3}, ir::DataType::kInt64);
    return ctx.give(result);
  }
  const Chosen chosen = search(ctx, s);
  const Id rows = all_rows(b, s, chosen), is_used = used_rows(b, s, chosen);
  if (ctx.pads_selections()) {
    result.id = padded(ctx, rows, is_used);
  } else {
    const Id where = b.emit(Op::WHERE, {is_used}, ir::DataType::kInt64);
    result.id = gather(b, rows, b.emit(Op::RESHAPE, {where, b.ints(Dims{-1})}, ir::DataType::kInt64), 0);
  }
  return ctx.give(result);
}

}  // namespace reef::import

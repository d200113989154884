// SPDX-License-Identifier: Apache-2.0
// Resize to a size that is known only while the model runs: along each axis, for every element of the result the places
// it lies between are computed, picked with GATHER, weighted and added.
//
// Places are computed in float32: of sizes beyond some thousands, a place on the very border between two elements can
// fall on the other side.
#include "import/onnx/resize.h"
#include "ir/op.h"

namespace reef::import {
namespace {

Id number(GraphBuilder& b, double value) { return b.scalar(ir::DataType::kFloat32, value); }

struct OpenAxis {
  std::int64_t in = 1;
  Id scale = kAbsent;   // float32 []
  Id out = kAbsent;     // int32 []
  Id length = kAbsent;  // float32 []: in * scale, not rounded
};

// Where each element of the result lies in the input: float32 [out].
Result<Id> sources(GraphBuilder& b, const ResizeMode& m, const OpenAxis& a) {
  const Id zero = b.scalar(ir::DataType::kInt32, 0), one = b.scalar(ir::DataType::kInt32, 1);
  const Id x = cast(b, b.emit(Op::RANGE, {zero, a.out, one}, ir::DataType::kInt32), ir::DataType::kFloat32);
  const Id half_pixel = div(b, add(b, x, 0.5), a.scale);
  if (m.coordinates == "half_pixel") return sub(b, half_pixel, 0.5);
  if (m.coordinates == "tf_half_pixel_for_nn") return half_pixel;
  if (m.coordinates == "asymmetric") return div(b, x, a.scale);
  const Id has_many = compare(b, Op::GREATER, a.out, one);
  if (m.coordinates == "pytorch_half_pixel") return select(b, has_many, sub(b, half_pixel, 0.5), mul(b, x, 0.0));
  if (m.coordinates == "align_corners") {
    const Id gaps = maximum(b, sub(b, a.length, 1.0), number(b, 1e-6));
    return select(b, has_many, div(b, mul(b, x, static_cast<double>(a.in - 1)), gaps), mul(b, x, 0.0));
  }
  return invalid_input("attribute coordinate_transformation_mode is '{}'", m.coordinates);
}

Id nearest_to(GraphBuilder& b, const ResizeMode& m, const OpenAxis& a, Id x) {
  if (m.nearest == kNearestOfOpset10) {
    const Id shrinks = cast(b, compare(b, Op::LESS, a.scale, number(b, 1)), ir::DataType::kFloat32);
    const Id below = unary(b, Op::FLOOR, x);
    return add(b, below, mul(b, shrinks, sub(b, unary(b, Op::CEIL, x), below)));
  }
  if (m.nearest == "floor") return unary(b, Op::FLOOR, x);
  if (m.nearest == "ceil") return unary(b, Op::CEIL, x);
  if (m.nearest == "round_prefer_ceil") return unary(b, Op::FLOOR, add(b, x, 0.5));
  return unary(b, Op::CEIL, sub(b, x, 0.5));
}

// The cubic kernel at the distance |t + offset| for 0 <= t < 1, as a polynomial in d = the distance.
Id cubic_weight(GraphBuilder& b, Id distance, double a, bool is_near) {
  const auto polynomial = [&](double c3, double c2, double c1, double c0) {
    Id sum = add(b, mul(b, distance, c3), c2);
    sum = add(b, mul(b, sum, distance), c1);
    return add(b, mul(b, sum, distance), c0);
  };
  return is_near ? polynomial(a + 2, -(a + 3), 0, 1) : polynomial(a, -5 * a, 8 * a, -4 * a);
}

struct Tap {
  Id place = kAbsent;   // float32 [out], whole, may lie outside
  Id weight = kAbsent;  // float32 [out]; kAbsent: 1
};

std::vector<Tap> taps_of(GraphBuilder& b, const ResizeMode& m, const OpenAxis& a, Id x) {
  if (m.mode == "nearest") return {{nearest_to(b, m, a, x), kAbsent}};
  const Id first = unary(b, Op::FLOOR, x);
  const Id part = sub(b, x, first), rest = subtract_from(b, 1.0, part);
  if (m.mode == "linear") return {{first, rest}, {add(b, first, 1.0), part}};
  return {{sub(b, first, 1.0), cubic_weight(b, add(b, part, 1.0), m.cubic, false)},
          {first, cubic_weight(b, part, m.cubic, true)},
          {add(b, first, 1.0), cubic_weight(b, rest, m.cubic, true)},
          {add(b, first, 2.0), cubic_weight(b, add(b, rest, 1.0), m.cubic, false)}};
}

// Weights of places outside become 0, the others make up for them.
void exclude_outside(GraphBuilder& b, std::int64_t size, std::vector<Tap>& taps) {
  Id total = kAbsent;
  for (Tap& tap : taps) {
    const Id is_inside = b.emit(Op::LOGICAL_AND,
                                {compare(b, Op::GREATER_EQUAL, tap.place, number(b, 0)),
                                 compare(b, Op::LESS, tap.place, number(b, static_cast<double>(size)))},
                                ir::DataType::kBool);
    tap.weight = select(b, is_inside, tap.weight, mul(b, tap.weight, 0.0));
    total = total == kAbsent ? tap.weight : add(b, total, tap.weight);
  }
  for (Tap& tap : taps) tap.weight = div(b, tap.weight, total);
}

Result<Id> along_axis(GraphBuilder& b, const ResizeMode& m, Id x, int axis, int rank, const OpenAxis& a) {
  REEF_ASSIGN_OR_RETURN(const Id from, sources(b, m, a));
  std::vector<Tap> taps = taps_of(b, m, a, from);
  if (m.exclude_outside && m.mode == "cubic") exclude_outside(b, a.in, taps);
  Dims column(static_cast<std::size_t>(rank - axis), 1);
  column[0] = -1;
  Id sum = kAbsent;
  for (const Tap& tap : taps) {
    const Id inside = minimum(b, maximum(b, tap.place, number(b, 0)), number(b, static_cast<double>(a.in - 1)));
    Id part = gather(b, x, cast(b, inside, ir::DataType::kInt32), axis);
    if (tap.weight != kAbsent)
      part = mul(b, part, b.emit(Op::RESHAPE, {tap.weight, b.ints(column)}, b.type(tap.weight)));
    sum = sum == kAbsent ? part : add(b, sum, part);
  }
  return sum;
}

}  // namespace

bool can_resize_open(const NodeContext& ctx, const ResizeMode& m) {
  const bool has_places = m.coordinates != "tf_crop_and_resize" && m.coordinates != "half_pixel_symmetric";
  return has_places && !m.antialias && ctx.ints_attribute("axes").empty() &&
         ctx.string_attribute("keep_aspect_ratio_policy", "stretch") == "stretch";
}

Status open_resize(NodeContext& ctx, const ResizeMode& m, int input, bool is_sizes) {
  GraphBuilder& b = ctx.b;
  const Dims dims = dims_of(b.shape(ctx.in(0)));
  const auto rank = static_cast<int>(dims.size());
  REEF_REQUIRE(b.elements(ctx.in(input)) == rank, "there are {} numbers for {} axes", b.elements(ctx.in(input)), rank);
  const ir::DataType type = b.type(ctx.in(0));
  Id y = m.mode == "nearest" ? ctx.in(0) : cast(b, ctx.in(0), ir::DataType::kFloat32);
  const Id given = reshape(b, ctx.in(input), {rank});
  for (int i = 0; i < rank; ++i) {
    OpenAxis a;
    a.in = dims[at(i)];
    REEF_REQUIRE(a.in >= 1, "axis {} is empty", i);
    const Id own = reshape(b, slice_axis(b, given, 0, i, 1), {});
    const Id size = number(b, static_cast<double>(a.in));
    a.scale = is_sizes ? div(b, cast(b, own, ir::DataType::kFloat32), size) : own;
    a.length = is_sizes ? cast(b, own, ir::DataType::kFloat32) : mul(b, own, size);
    a.out = cast(b, unary(b, Op::FLOOR, a.length), ir::DataType::kInt32);
    REEF_ASSIGN_OR_RETURN(y, along_axis(b, m, y, i, rank, a));
  }
  return ctx.give(cast(b, y, type));
}

}  // namespace reef::import

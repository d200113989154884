// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/open_sizes.h"
#include "ir/op.h"

#include <numbers>

namespace reef::import {
namespace {

Dims counting(std::int64_t count) {
  Dims numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

// Input i as int32 [n]. Large numbers, which stand for "to the end", are limited.
Id int32_list(NodeContext& ctx, int i) {
  GraphBuilder& b = ctx.b;
  const Id list = reshape(b, ctx.in(i), {b.elements(ctx.in(i))});
  if (b.type(list) != ir::DataType::kInt64) return cast(b, list, ir::DataType::kInt32);
  const double limit = 1 << 30;
  const Id above = maximum(b, list, b.scalar(ir::DataType::kInt64, -limit));
  return cast(b, minimum(b, above, b.scalar(ir::DataType::kInt64, limit)), ir::DataType::kInt32);
}

Id int32_scalar(NodeContext& ctx, int i) { return cast(ctx.b, reshape(ctx.b, ctx.in(i), {}), ir::DataType::kInt32); }

// int32 [n, rank]: 1 where the axis of the row is that of the column. Axes [n] may count from the end.
Id axis_marks(GraphBuilder& b, Id axes, std::int64_t rank) {
  const Id from_start = binary(b, Op::FLOOR_MOD, axes, b.scalar(ir::DataType::kInt32, static_cast<double>(rank)));
  const Id rows = reshape(b, from_start, {b.elements(axes), 1});
  return cast(b, compare(b, Op::EQUAL, rows, b.ints(counting(rank), shape_from({1, rank}))), ir::DataType::kInt32);
}

Id is_positive(GraphBuilder& b, Id x) { return compare(b, Op::GREATER, x, b.scalar(b.type(x), 0)); }

Id reshaped(GraphBuilder& b, Id x, Id shape) { return b.emit(Op::RESHAPE, {x, shape}, b.type(x)); }

// Numbers of the elements of `marks` (int32, 1 or 0) that are 1, `count` of them.
Id marked_places(GraphBuilder& b, Id marks, std::int64_t count) {
  return b.emit_many(Op::TOPK_V2, {marks, b.scalar(ir::DataType::kInt32, static_cast<double>(count))},
                     {ir::DataType::kInt32, ir::DataType::kInt32})[1];
}

// Padding with elements of the tensor: places from -before to size + after, limited or taken anew.
Id open_pad_by_gather(GraphBuilder& b, Id x, Id pads, bool is_edge) {
  const Dims dims = dims_of(b.shape(x));
  const auto rank = static_cast<std::int64_t>(dims.size());
  const auto amount = [&](std::int64_t i) { return reshape(b, slice_axis(b, pads, 0, i, 1), {}); };
  for (std::int64_t i = 0; i < rank; ++i) {
    const std::int64_t size = dims[at(i)];
    const Id begin = subtract_from(b, 0, amount(i)), end = add(b, amount(rank + i), static_cast<double>(size));
    Id places = b.emit(Op::RANGE, {begin, end, b.scalar(ir::DataType::kInt32, 1)}, ir::DataType::kInt32);
    if (is_edge) {
      places = maximum(b, places, b.scalar(ir::DataType::kInt32, 0));
      places = minimum(b, places, b.scalar(ir::DataType::kInt32, static_cast<double>(size) - 1));
    } else {
      places = binary(b, Op::FLOOR_MOD, places, b.scalar(ir::DataType::kInt32, static_cast<double>(size)));
    }
    x = gather(b, x, places, static_cast<int>(i));
  }
  return x;
}

}  // namespace

Status open_reshape(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  Id shape = int32_list(ctx, 1);
  if (ctx.int_attribute("allowzero", 0) == 0) {
    // 0 keeps the input's size.
    Dims sizes = dims_of(b.shape(ctx.in(0)));
    sizes.resize(static_cast<std::size_t>(b.elements(shape)), 0);
    const Id is_kept = compare(b, Op::EQUAL, shape, b.scalar(ir::DataType::kInt32, 0));
    shape = select(b, is_kept, b.ints(sizes), shape);
  }
  return ctx.give(reshaped(b, ctx.in(0), shape));
}

Status open_expand(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const Id own = b.ints(dims_of(b.shape(ctx.in(0))));
  const Id shape = b.emit(Op::BROADCAST_ARGS, {own, int32_list(ctx, 1)}, ir::DataType::kInt32);
  return ctx.give(b.emit(Op::BROADCAST_TO, {ctx.in(0), shape}, b.type(ctx.in(0))));
}

Status open_constant_of_shape(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  Value value;
  value.type = onnx::ElementType::kFloat;
  Id one = b.scalar(ir::DataType::kFloat32, 0);
  if (const onnx::Tensor* tensor = ctx.tensor_attribute("value")) {
    value.type = tensor->type;
    REEF_ASSIGN_OR_RETURN(one, constant_of(b, *tensor, ""));
    REEF_REQUIRE(b.elements(one) == 1, "attribute value has {} elements", b.elements(one));
    one = reshape(b, one, {});
  }
  value.id = b.emit(Op::FILL, {int32_list(ctx, 0), one}, b.type(one));
  return ctx.give(value);
}

Status open_tile(NodeContext& ctx) {
  return ctx.give(ctx.b.emit(Op::TILE, {ctx.in(0), int32_list(ctx, 1)}, ctx.b.type(ctx.in(0))));
}

Status open_squeeze(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const std::int64_t rank = b.rank(ctx.in(0)), dropped = b.elements(ctx.in(1));
  REEF_REQUIRE(dropped <= rank, "{} axes of {} dimensions are to be dropped", dropped, rank);
  const Id drops = reduce(b, Op::SUM, axis_marks(b, int32_list(ctx, 1), rank), {0}, false);
  const Id kept = marked_places(b, subtract_from(b, 1, drops), rank - dropped);
  return ctx.give(reshaped(b, ctx.in(0), gather(b, b.ints(dims_of(b.shape(ctx.in(0)))), kept, 0)));
}

Status open_unsqueeze(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const Dims dims = dims_of(b.shape(ctx.in(0)));
  const auto rank = static_cast<std::int64_t>(dims.size()) + b.elements(ctx.in(1));
  if (dims.empty()) return ctx.give(reshape(b, ctx.in(0), Dims(static_cast<std::size_t>(rank), 1)));
  const Id keeps = subtract_from(b, 1, reduce(b, Op::SUM, axis_marks(b, int32_list(ctx, 1), rank), {0}, false));
  ir::Attributes attributes;
  attributes.set("exclusive", true);
  attributes.set("reverse", false);
  const Id before =
      b.emit(Op::CUMSUM, {keeps, b.scalar(ir::DataType::kInt32, 0)}, ir::DataType::kInt32, std::move(attributes));
  const Id place = minimum(b, before, b.scalar(ir::DataType::kInt32, static_cast<double>(dims.size()) - 1));
  const Id sizes = gather(b, b.ints(dims), place, 0);
  return ctx.give(reshaped(b, ctx.in(0), select(b, is_positive(b, keeps), sizes, b.scalar(ir::DataType::kInt32, 1))));
}

// Begins, ends and steps of the axes named are spread over all axes.
Status open_slice(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const Id x = ctx.in(0);
  const std::int64_t rank = b.rank(x), count = b.elements(ctx.in(1));
  for (int i = 2; i <= 4; ++i) {
    REEF_REQUIRE(!ctx.has(i) || b.elements(ctx.in(i)) == count, "input {} has {} elements, starts {}", i,
                 b.elements(ctx.in(i)), count);
  }
  const Id axes = ctx.has(3) ? int32_list(ctx, 3) : b.ints(counting(count));
  const Id marks = axis_marks(b, axes, rank);
  const Id is_named = is_positive(b, reduce(b, Op::SUM, marks, {0}, false));
  const auto spread = [&](int input, const Dims& others) {
    const Id column = reshape(b, int32_list(ctx, input), {count, 1});
    return select(b, is_named, reduce(b, Op::SUM, mul(b, marks, column), {0}, false), b.ints(others));
  };
  const Dims ones(static_cast<std::size_t>(rank), 1);
  const Id begins = spread(1, Dims(static_cast<std::size_t>(rank), 0)), ends = spread(2, dims_of(b.shape(x)));
  const Id steps = ctx.has(4) ? spread(4, ones) : b.ints(ones);
  ir::Attributes attributes;
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    attributes.set(mask, std::int64_t{0});
  }
  attributes.set("offset", false);
  return ctx.give(b.emit(Op::STRIDED_SLICE, {x, begins, ends, steps}, b.type(x), std::move(attributes)));
}

Status open_split(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(x)));
  REEF_REQUIRE(b.elements(ctx.in(1)) == ctx.output_count(), "there are {} sizes for {} outputs", b.elements(ctx.in(1)),
               ctx.output_count());
  ir::Attributes attributes;
  attributes.set("num_splits", static_cast<std::int64_t>(ctx.output_count()));
  const std::vector<Id> parts = b.emit_many(
      Op::SPLIT_V, {x, int32_list(ctx, 1), b.scalar(ir::DataType::kInt32, axis)},
      std::vector<ir::DataType>(static_cast<std::size_t>(ctx.output_count()), b.type(x)), std::move(attributes));
  for (int i = 0; i < ctx.output_count(); ++i) ctx.out(i, parts[at(i)]);
  return ok_status();
}

Status open_range(NodeContext& ctx) {
  GraphBuilder& b = ctx.b;
  const ir::DataType type = b.type(ctx.in(0)), wide = arithmetic_type(type);
  std::vector<Id> operands;
  for (int i = 0; i < 3; ++i) {
    REEF_REQUIRE(b.elements(ctx.in(i)) == 1, "input {} has {} elements", i, b.elements(ctx.in(i)));
    operands.push_back(cast(b, reshape(b, ctx.in(i), {}), wide));
  }
  return ctx.give(cast(b, b.emit(Op::RANGE, operands, wide), type));
}

Status open_pad(NodeContext& ctx, const std::string& mode) {
  GraphBuilder& b = ctx.b;
  const Id x = widened(b, ctx.in(0));
  const std::int64_t rank = b.rank(x);
  REEF_REQUIRE(b.elements(ctx.in(1)) == 2 * rank, "pads has {} numbers; {} are needed", b.elements(ctx.in(1)),
               2 * rank);
  REEF_REQUIRE(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap", "attribute mode is '{}'",
               mode);
  if (mode == "edge" || mode == "wrap") {
    return ctx.give(cast(b, open_pad_by_gather(b, x, int32_list(ctx, 1), mode == "edge"), b.type(ctx.in(0))));
  }
  const Id pads = transpose(b, reshape(b, int32_list(ctx, 1), {2, rank}), {1, 0});
  if (mode == "reflect") {
    ir::Attributes attributes;
    attributes.set("mode", ir::EnumName{"REFLECT"});
    return ctx.give(cast(b, b.emit(Op::MIRROR_PAD, {x, pads}, b.type(x), std::move(attributes)), b.type(ctx.in(0))));
  }
  Id value = b.scalar(b.type(x), 0);
  if (ctx.has(2)) {
    REEF_REQUIRE(b.elements(ctx.in(2)) == 1, "constant_value has {} elements", b.elements(ctx.in(2)));
    value = cast(b, reshape(b, ctx.in(2), {1}), b.type(x));
  }
  return ctx.give(cast(b, b.emit(Op::PADV2, {x, pads, value}, b.type(x)), b.type(ctx.in(0))));
}

Status open_window(NodeContext& ctx, const std::vector<double>& coefficients) {
  GraphBuilder& b = ctx.b;
  const auto type = static_cast<onnx::ElementType>(ctx.int_attribute("output_datatype", 1));
  const auto stored = stored_type(type);
  if (!stored) return unsupported("attribute output_datatype: {} is not converted", onnx::element_type_name(type));
  REEF_REQUIRE(b.elements(ctx.in(0)) == 1, "the size has {} elements", b.elements(ctx.in(0)));
  const Id size = int32_scalar(ctx, 0);
  const Id one = b.scalar(ir::DataType::kInt32, 1);
  const Id places = cast(b, b.emit(Op::RANGE, {b.scalar(ir::DataType::kInt32, 0), size, one}, ir::DataType::kInt32),
                         ir::DataType::kFloat32);
  const Id periods = ctx.int_attribute("periodic", 1) != 0 ? size : maximum(b, sub(b, size, 1.0), one);
  const Id angle = mul(b, div(b, places, cast(b, periods, ir::DataType::kFloat32)), 2 * std::numbers::pi);
  Id window = kAbsent;
  for (std::size_t k = 1; k < coefficients.size(); ++k) {
    const Id part = mul(b, unary(b, Op::COS, mul(b, angle, static_cast<double>(k))), coefficients[k]);
    window = add(b, part, k == 1 ? b.scalar(ir::DataType::kFloat32, coefficients[0]) : window);
  }
  return ctx.give({b.emit(Op::CAST, {window}, *stored), type, {}});
}

}  // namespace reef::import

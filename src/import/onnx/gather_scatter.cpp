// SPDX-License-Identifier: Apache-2.0
// Nodes that pick or place elements by index. Negative indices count from the end: constants are corrected here, others
// while the model runs.
#include <algorithm>
#include <optional>

#include "import/onnx/progressions.h"
#include "import/onnx/shared_parts.h"
#include "ir/op.h"

namespace reef::import {

Id from_start(GraphBuilder& b, Id indices, std::int64_t size) {
  const Id narrow = cast(b, indices, ir::DataType::kInt32);
  if (const auto values = b.int_values(indices)) {
    const bool is_plain = std::all_of(values->begin(), values->end(), [](std::int64_t at) { return at >= 0; });
    if (is_plain) return narrow;
  }
  return binary(b, Op::FLOOR_MOD, narrow, b.scalar(ir::DataType::kInt32, static_cast<double>(size)));
}

namespace {

// Row-major strides.
Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Of each element of a tensor of shape `dims`, the sum of its coordinates times `weights` (0 for `skipped`).
Dims coordinate_sums(const Dims& dims, const Dims& weights, std::size_t skipped) {
  Dims sums = {0};
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    Dims next;
    next.reserve(sums.size() * static_cast<std::size_t>(dims[axis]));
    for (const std::int64_t sum : sums) {
      for (std::int64_t i = 0; i < dims[axis]; ++i) next.push_back(sum + (axis == skipped ? 0 : i * weights[axis]));
    }
    sums = std::move(next);
  }
  return sums;
}

// GatherElements and ScatterElements address element [i][j][k] by replacing one coordinate: as positions in the data
// seen as one row, [n].
Result<Id> row_positions(NodeContext& ctx, Id data, Id indices, int axis) {
  GraphBuilder& b = ctx.b;
  const Dims from = dims_of(b.shape(data)), to = dims_of(b.shape(indices));
  REEF_REQUIRE(from.size() == to.size(), "data has {} dimensions, indices {}", from.size(), to.size());
  for (std::size_t i = 0; i < to.size(); ++i) {
    REEF_REQUIRE(static_cast<int>(i) == axis || to[i] <= from[i], "indices {} reach beyond the data {}",
                 b.shape(indices).to_string(), b.shape(data).to_string());
  }
  if (b.elements(indices) > (1 << 24)) return unsupported("indices have more than 16 million elements");
  const Dims strides = strides_of(from);
  const auto at = static_cast<std::size_t>(axis);
  const Dims base = coordinate_sums(to, strides, at);
  const std::int64_t count = b.elements(indices);
  const Id inner = mul(b, reshape(b, from_start(b, indices, from[at]), {count}), static_cast<double>(strides[at]));
  return add(b, inner, b.ints(base));
}

}  // namespace

// An embedding: rows of a constant table, by numbers that are an input of the model, such as tokens. These are not
// negative in any model that a tokenizer feeds, and stay as they are.
bool is_embedding(const GraphBuilder& b, Id data, Id indices, int axis) {
  return axis == 0 && b.rank(data) == 2 && b.is_known(data) && is_float(b.type(data)) && b.producer(indices) < 0 &&
         !b.is_known(indices);
}

namespace {

// Whether a transpose leaves the axes other than the one that becomes `axis` in their order.
bool keeps_other_axes(const std::vector<std::int64_t>& permutation, int axis) {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (static_cast<int>(i) == axis) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  return true;
}

// The axis of `from` that holds what `axis` of `to` does, where a reshape keeps it whole; -1: none.
int axis_before_reshape(const ir::Shape& from, const ir::Shape& to, int axis) {
  for (int i = 0; i < from.rank(); ++i) {
    if (from[i] == to[axis] && from.product(0, i) == to.product(0, axis)) return i;
  }
  return -1;
}

// Picks one of the tensors that were stacked to make `data`, looking through reshapes and transposes: the last state of
// an unrolled sequence, without the stack. kAbsent: it is no such stack.
Id part_of_stack(GraphBuilder& b, Id data, int axis, std::int64_t index) {
  Id id = data;
  while (true) {
    const std::int32_t producer = b.producer(id);
    if (producer < 0) return kAbsent;
    const ir::Operator& op = b.op(producer);
    if (op.type == Op::PACK) {
      const bool is_axis = op.attributes.get_int("axis") == axis;
      if (!is_axis || index >= static_cast<std::int64_t>(op.inputs.size())) return kAbsent;
      return Id{op.inputs[reef::at(index)]};
    }
    const Id source{op.inputs[0]};
    if (op.type == Op::RESHAPE) {
      axis = axis_before_reshape(b.shape(source), b.shape(id), axis);
    } else if (op.type == Op::TRANSPOSE) {
      const auto order = b.int_values(Id{op.inputs[1]});
      if (!order || !keeps_other_axes(*order, axis)) return kAbsent;
      axis = static_cast<int>((*order)[reef::at(axis)]);
    } else {
      return kAbsent;
    }
    if (axis < 0) return kAbsent;
    id = source;
  }
}

}  // namespace

Status convert_gather(NodeContext& ctx, GraphBuilder& b) {
  const Id data = ctx.in(0), indices = ctx.in(1);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(data)));
  const std::int64_t size = b.dim(data, axis);
  const auto known = b.int_values(indices);
  if (known && known->size() == 1 && !b.is_known(data)) {
    const std::int64_t index = (*known)[0] < 0 ? (*known)[0] + size : (*known)[0];
    const Id part = index >= 0 && index < size ? part_of_stack(b, data, axis, index) : kAbsent;
    if (part != kAbsent) {
      Dims dims = dims_of(b.shape(data));
      dims.erase(dims.begin() + axis);
      const Dims inserted = dims_of(b.shape(indices));
      dims.insert(dims.begin() + axis, inserted.begin(), inserted.end());
      return ctx.give(reshape(b, part, dims));
    }
  }
  if (is_embedding(b, data, indices, axis)) return ctx.give(gather(b, data, indices, axis));
  return ctx.give(gather(b, data, from_start(b, indices, size), axis));
}

Status convert_gather_elements(NodeContext& ctx, GraphBuilder& b) {
  const Id data = ctx.in(0), indices = ctx.in(1);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(data)));
  REEF_ASSIGN_OR_RETURN(const Id positions, row_positions(ctx, data, indices, axis));
  const Id row = reshape(b, data, {b.elements(data)});
  Id picked = kAbsent;
  if (const auto known = b.int_values(positions); known && !b.is_known(data)) {
    if (const auto pattern = progressions_of(*known)) picked = read_progressions(b, row, *pattern).value_or(kAbsent);
  }
  if (picked == kAbsent) picked = gather(b, row, positions, 0);
  return ctx.give(reshape(b, picked, dims_of(b.shape(indices))));
}

namespace {

// Coordinates [..., k] of an n-D index, each from the start.
Id coordinates_from_start(GraphBuilder& b, Id indices, const Dims& data_dims, std::size_t first) {
  const Id narrow = cast(b, indices, ir::DataType::kInt32);
  if (const auto values = b.int_values(indices)) {
    if (std::all_of(values->begin(), values->end(), [](std::int64_t at) { return at >= 0; })) return narrow;
  }
  const auto count = static_cast<std::size_t>(b.dim(indices, b.rank(indices) - 1));
  const Dims sizes(data_dims.begin() + static_cast<std::ptrdiff_t>(first),
                   data_dims.begin() + static_cast<std::ptrdiff_t>(first + count));
  return binary(b, Op::FLOOR_MOD, narrow, b.ints(sizes));
}

Status check_coordinates(NodeContext& ctx, std::size_t batch) {
  GraphBuilder& b = ctx.b;
  const int rank = b.rank(ctx.in(0)), index_rank = b.rank(ctx.in(1));
  REEF_REQUIRE(index_rank >= 1 && b.dim(ctx.in(1), index_rank - 1) >= 1 &&
                   b.dim(ctx.in(1), index_rank - 1) + static_cast<std::int64_t>(batch) <= rank &&
                   static_cast<std::int64_t>(batch) < index_rank,
               "indices {} do not fit data {}", b.shape(ctx.in(1)).to_string(), b.shape(ctx.in(0)).to_string());
  return ok_status();
}

}  // namespace

Status convert_gather_nd(NodeContext& ctx, GraphBuilder& b) {
  const std::int64_t batch = ctx.int_attribute("batch_dims", 0);
  REEF_REQUIRE(batch >= 0 && batch < 8, "attribute batch_dims is {}", batch);
  REEF_RETURN_IF_ERROR(check_coordinates(ctx, static_cast<std::size_t>(batch)));
  const Dims dims = dims_of(b.shape(ctx.in(0)));
  Id indices = coordinates_from_start(b, ctx.in(1), dims, static_cast<std::size_t>(batch));
  if (batch > 0) {
    // The batch's coordinates are put in front of each index.
    Dims lead = dims_of(b.shape(indices));
    std::vector<Id> parts;
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch); ++i) {
      Dims weights(lead.size() - 1, 0);
      weights[i] = 1;
      Dims shape(lead.begin(), lead.end() - 1);
      const Dims numbers = coordinate_sums(shape, weights, shape.size());
      shape.push_back(1);
      parts.push_back(b.ints(numbers, shape_from(shape)));
    }
    parts.push_back(indices);
    indices = concat(b, parts, b.rank(indices) - 1);
  }
  return ctx.give(gather_nd(b, ctx.in(0), indices));
}

namespace {

// Places `updates` [n, ...] at `indices` [n, k] of `data`. For sums, equal indices add up. For the others they must not
// repeat, which is only known for constants.
Result<Id> placed(NodeContext& ctx, Id data, Id indices, Id updates, const std::string& reduction) {
  GraphBuilder& b = ctx.b;
  const Dims shape = dims_of(b.shape(data));
  const Id wide = widened(b, data), changes = widened(b, updates);
  if (reduction == "add") return cast(b, add(b, wide, scatter_nd(b, indices, changes, shape)), b.type(data));
  const Id ones = b.filled(ir::DataType::kFloat32, b.shape(changes), 1);
  const Id counts = scatter_nd(b, indices, ones, shape);
  const Id is_hit = compare(b, Op::GREATER, counts, b.scalar(ir::DataType::kFloat32, 0));
  const Id scattered = scatter_nd(b, indices, changes, shape);
  if (reduction == "none") return cast(b, select(b, is_hit, scattered, wide), b.type(data));
  const Op op = reduction == "mul" ? Op::MUL : reduction == "max" ? Op::MAXIMUM : Op::MINIMUM;
  return cast(b, select(b, is_hit, binary(b, op, wide, scattered), wide), b.type(data));
}

// One update after the other, so that equal indices take effect in order.
Result<Id> placed_in_order(NodeContext& ctx, Id data, Id indices, Id updates, const std::string& reduction) {
  GraphBuilder& b = ctx.b;
  if (reduction == "add") return placed(ctx, data, indices, updates, reduction);
  bool may_repeat = reduction != "none";
  if (const auto known = b.int_values(indices)) {
    const auto width = static_cast<std::size_t>(b.dim(indices, 1));
    std::vector<Dims> rows;
    for (std::size_t i = 0; i + width <= known->size(); i += width) {
      rows.emplace_back(known->begin() + static_cast<std::ptrdiff_t>(i),
                        known->begin() + static_cast<std::ptrdiff_t>(i + width));
    }
    std::sort(rows.begin(), rows.end());
    may_repeat = std::adjacent_find(rows.begin(), rows.end()) != rows.end();
  }
  if (!may_repeat) return placed(ctx, data, indices, updates, reduction);
  const std::int64_t count = b.dim(indices, 0);
  if (count > 256) {
    return unsupported("attribute reduction is '{}' and {} indices may repeat; TFLite cannot keep their order",
                       reduction, count);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    REEF_ASSIGN_OR_RETURN(
        data, placed(ctx, data, slice_axis(b, indices, 0, i, 1), slice_axis(b, updates, 0, i, 1), reduction));
  }
  return data;
}

Result<std::string> read_reduction_name(NodeContext& ctx) {
  const std::string reduction = ctx.string_attribute("reduction", "none");
  REEF_REQUIRE(
      reduction == "none" || reduction == "add" || reduction == "mul" || reduction == "max" || reduction == "min",
      "attribute reduction is '{}'", reduction);
  return reduction;
}

}  // namespace

namespace {

// Positions, among all rows of the data, of constant coordinates [n, k]: rows are what the first k dimensions tell
// apart. Nothing where they are not known.
std::optional<Dims> row_numbers(GraphBuilder& b, Id indices, const Dims& dims, std::size_t width) {
  const auto known = b.int_values(indices);
  if (!known || width == 0) return {};
  Dims rows;
  for (std::size_t i = 0; i + width <= known->size(); i += width) {
    std::int64_t row = 0;
    for (std::size_t k = 0; k < width; ++k) {
      if ((*known)[i + k] < 0 || (*known)[i + k] >= dims[k]) return {};
      row = row * dims[k] + (*known)[i + k];
    }
    rows.push_back(row);
  }
  return rows;
}

// An assignment to a box of the data: slices and concatenations instead of an index tensor. kAbsent: it is none.
Id placed_in_box(GraphBuilder& b, Id data, Id indices, Id updates, const std::string& reduction) {
  const Dims dims = dims_of(b.shape(data));
  const auto width = static_cast<std::size_t>(b.dim(indices, b.rank(indices) - 1));
  const auto rows = row_numbers(b, indices, dims, width);
  const auto pattern = rows ? progressions_of(*rows) : std::nullopt;
  if (!pattern || b.elements(data) == 0 || b.elements(updates) == 0) return kAbsent;
  const auto count = static_cast<std::int64_t>(rows->size());
  const std::int64_t row_elements = b.elements(updates) / count;
  const OpName combine = reduction == "none"  ? OpName()
                         : reduction == "add" ? Op::ADD
                         : reduction == "mul" ? Op::MUL
                         : reduction == "max" ? Op::MAXIMUM
                                              : Op::MINIMUM;
  const Id narrow = reshape(b, data, {b.elements(data) / row_elements, row_elements});
  const auto result = write_progressions(b, combine.empty() ? narrow : widened(b, narrow), *pattern,
                                         combine.empty() ? updates : widened(b, updates), combine);
  return result ? reshape(b, cast(b, *result, b.type(data)), dims) : kAbsent;
}

}  // namespace

Status convert_scatter_nd(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(check_coordinates(ctx, 0));
  REEF_ASSIGN_OR_RETURN(const std::string reduction, read_reduction_name(ctx));
  const Id data = ctx.in(0);
  const Dims dims = dims_of(b.shape(data));
  const Id indices = coordinates_from_start(b, ctx.in(1), dims, 0);
  const std::int64_t width = b.dim(indices, b.rank(indices) - 1);
  const std::int64_t count = width == 0 ? 0 : b.elements(indices) / width;
  Dims update_dims = {count};
  update_dims.insert(update_dims.end(), dims.begin() + width, dims.end());
  const Id updates = reshape(b, ctx.in(2), update_dims);
  if (const Id boxed = placed_in_box(b, data, indices, updates, reduction); boxed != kAbsent) return ctx.give(boxed);
  REEF_ASSIGN_OR_RETURN(const Id result,
                        placed_in_order(ctx, data, reshape(b, indices, {count, width}), updates, reduction));
  return ctx.give(result);
}

Status convert_scatter_elements(NodeContext& ctx, GraphBuilder& b) {
  const Id data = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const std::string reduction, read_reduction_name(ctx));
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(data)));
  REEF_ASSIGN_OR_RETURN(const Id positions, row_positions(ctx, data, ctx.in(1), axis));
  const std::int64_t count = b.elements(ctx.in(1));
  const Id row = reshape(b, data, {b.elements(data)});
  const Id places = reshape(b, positions, {count, 1}), updates = reshape(b, ctx.in(2), {count});
  Id result = count == 0 ? kAbsent : placed_in_box(b, row, places, updates, reduction);
  if (result == kAbsent) {
    REEF_ASSIGN_OR_RETURN(result, placed_in_order(ctx, row, places, updates, reduction));
  }
  return ctx.give(reshape(b, result, dims_of(b.shape(data))));
}

}  // namespace reef::import

// SPDX-License-Identifier: Apache-2.0
// Nodes that move elements: join, cut, pad, repeat, pick.
#include <algorithm>
#include <numeric>

#include "import/onnx/converter.h"
#include "import/onnx/open_sizes.h"

namespace reef::import {

Status convert_concat(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(ctx.input_count()));
  REEF_REQUIRE(ctx.input_count() >= 1, "it has no inputs");
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 1), b.rank(ctx.in(0))));
  std::vector<Id> parts;
  for (int i = 0; i < ctx.input_count(); ++i) {
    REEF_REQUIRE(b.type(ctx.in(i)) == b.type(ctx.in(0)), "inputs are of different types");
    parts.push_back(ctx.in(i));
  }
  return ctx.give(concat(b, parts, axis));
}

Status convert_split(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  REEF_ASSIGN_OR_RETURN(const int axis, ctx.axis(ctx.int_attribute("axis", 0), b.rank(x)));
  if (ctx.is_open(1)) return open_split(ctx);
  Dims sizes = ctx.ints_attribute("split");
  if (ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(sizes, ctx.ints(1));
  }
  const std::int64_t length = b.dim(x, axis), pieces = ctx.output_count();
  REEF_REQUIRE(pieces >= 1, "it has no outputs");
  if (sizes.empty()) {  // equal pieces, the last one smaller
    const std::int64_t each = (length + pieces - 1) / pieces;
    for (std::int64_t i = 0; i < pieces; ++i) sizes.push_back(std::clamp<std::int64_t>(length - i * each, 0, each));
  }
  REEF_REQUIRE(static_cast<std::int64_t>(sizes.size()) == pieces, "there are {} sizes for {} outputs", sizes.size(),
               pieces);
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    REEF_REQUIRE(size >= 0 && size <= length, "a piece of size {} of {} is asked for", size, length);
    total += size;
  }
  REEF_REQUIRE(total == length, "the pieces' sizes add up to {}, but the axis has {}", total, length);
  const bool is_even = std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size == sizes[0]; });
  std::vector<Id> parts;
  if (is_even && sizes[0] > 0) {
    parts = split_even(b, x, axis, static_cast<int>(pieces));
  } else {
    std::int64_t begin = 0;
    for (const std::int64_t size : sizes) {
      parts.push_back(slice_axis(b, x, axis, begin, size));
      begin += size;
    }
  }
  for (int i = 0; i < ctx.output_count(); ++i) ctx.out(i, parts[reef::at(i)]);
  return ok_status();
}

namespace {

struct SliceAxis {
  std::int64_t begin = 0, end = 0, step = 1;
};

// One axis by ONNX's rules: negative counts from the end, then limited to the axis.
Result<SliceAxis> slice_of(std::int64_t size, std::int64_t begin, std::int64_t end, std::int64_t step) {
  REEF_REQUIRE(step != 0, "a step is 0");
  if (begin < 0) begin = std::max(begin, -size - 1) + size;
  if (end < 0) end = std::max(end, -size - 1) + size;
  SliceAxis s;
  s.step = std::clamp<std::int64_t>(step, -(1 << 30), 1 << 30);
  s.begin = std::clamp<std::int64_t>(begin, 0, step > 0 ? size : size - 1);
  s.end = std::clamp<std::int64_t>(end, step > 0 ? 0 : -1, size);
  return s;
}

}  // namespace

Status convert_slice(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const int rank = b.rank(x);
  for (int i = 1; i <= 4; ++i) {
    if (ctx.is_open(i)) return open_slice(ctx);
  }
  Dims begins = ctx.ints_attribute("starts"), ends = ctx.ints_attribute("ends"), given = ctx.ints_attribute("axes");
  Dims steps;
  if (ctx.opset() >= 10 || ctx.has(1)) {
    REEF_ASSIGN_OR_RETURN(begins, ctx.ints(1));
    REEF_ASSIGN_OR_RETURN(ends, ctx.ints(2));
    if (ctx.has(3)) {
      REEF_ASSIGN_OR_RETURN(given, ctx.ints(3));
    }
    if (ctx.has(4)) {
      REEF_ASSIGN_OR_RETURN(steps, ctx.ints(4));
    }
  }
  if (given.empty()) {
    given.resize(begins.size());
    std::iota(given.begin(), given.end(), 0);
  }
  if (steps.empty()) steps.assign(begins.size(), 1);
  REEF_REQUIRE(ends.size() == begins.size() && given.size() == begins.size() && steps.size() == begins.size(),
               "starts, ends, axes and steps have different lengths");
  REEF_ASSIGN_OR_RETURN(const std::vector<int> axes, ctx.axes(given, rank));
  Dims from(static_cast<std::size_t>(rank), 0), to = dims_of(b.shape(x)), step(static_cast<std::size_t>(rank), 1);
  bool is_plain = true, is_empty = false;
  Dims sizes = to;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto at = static_cast<std::size_t>(axes[i]);
    REEF_ASSIGN_OR_RETURN(const SliceAxis s, slice_of(to[at], begins[i], ends[i], steps[i]));
    is_plain = is_plain && s.step == 1;
    const std::int64_t distance = s.step > 0 ? s.end - s.begin : s.begin - s.end;
    const std::int64_t stride = s.step > 0 ? s.step : -s.step;
    sizes[at] = distance <= 0 || to[at] == 0 ? 0 : (distance + stride - 1) / stride;
    is_empty = is_empty || sizes[at] == 0;
    from[at] = s.begin;
    to[at] = s.end;
    step[at] = s.step;
  }
  if (is_empty) {
    ctx.out(0, b.filled(b.type(x), shape_from(sizes), 0));
  } else {
    ctx.out(0, is_plain ? slice(b, x, from, sizes) : strided_slice(b, x, from, to, step));
  }
  return ok_status();
}

namespace {

// Pad with negative amounts cuts first.
Id cropped(GraphBuilder& b, Id x, Dims& before, Dims& after) {
  Dims begins, sizes;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::int64_t front = std::max<std::int64_t>(0, -before[i]), back = std::max<std::int64_t>(0, -after[i]);
    begins.push_back(front);
    sizes.push_back(std::max<std::int64_t>(0, b.dim(x, static_cast<int>(i)) - front - back));
    before[i] = std::max<std::int64_t>(0, before[i]);
    after[i] = std::max<std::int64_t>(0, after[i]);
  }
  return slice(b, x, begins, sizes);
}

// Picks rows by number along one axis: edge and wrap padding, and reflections wider than the tensor.
Id pad_by_gather(GraphBuilder& b, Id x, int axis, std::int64_t before, std::int64_t after, const std::string& mode) {
  if (before == 0 && after == 0) return x;
  const std::int64_t size = b.dim(x, axis);
  Dims rows;
  for (std::int64_t i = -before; i < size + after; ++i) {
    std::int64_t at = i;
    if (mode == "edge") {
      at = std::clamp<std::int64_t>(i, 0, size - 1);
    } else if (mode == "wrap") {
      at = ((i % size) + size) % size;
    } else {
      const std::int64_t period = std::max<std::int64_t>(1, 2 * (size - 1));
      at = ((i % period) + period) % period;
      if (at >= size) at = period - at;
    }
    rows.push_back(at);
  }
  return gather(b, x, b.ints(rows), axis);
}

Status pad_amounts(NodeContext& ctx, Dims& before, Dims& after) {
  const int rank = ctx.b.rank(ctx.in(0));
  Dims amounts = ctx.ints_attribute(ctx.opset() < 2 ? "paddings" : "pads");
  if (ctx.opset() >= 11) {
    REEF_ASSIGN_OR_RETURN(amounts, ctx.ints(1));
  }
  std::vector<int> axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (ctx.has(3)) {
    REEF_ASSIGN_OR_RETURN(const Dims given, ctx.ints(3));
    REEF_ASSIGN_OR_RETURN(axes, ctx.axes(given, rank));
  }
  REEF_REQUIRE(amounts.size() == 2 * axes.size(), "pads has {} numbers; {} are needed", amounts.size(),
               2 * axes.size());
  before.assign(static_cast<std::size_t>(rank), 0);
  after = before;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    before[reef::at(axes[i])] = amounts[i];
    after[reef::at(axes[i])] = amounts[i + axes.size()];
  }
  for (const Dims* list : {&before, &after}) {
    for (const std::int64_t amount : *list) {
      REEF_REQUIRE(amount > -(1 << 30) && amount < (1 << 30), "pads has the value {}", amount);
    }
  }
  return ok_status();
}

}  // namespace

Status convert_pad(NodeContext& ctx, GraphBuilder& b) {
  const std::string mode = ctx.string_attribute("mode", "constant");
  if (ctx.opset() >= 11 && !ctx.has(3) && ctx.is_open(1)) return open_pad(ctx, mode);
  Dims before, after;
  REEF_RETURN_IF_ERROR(pad_amounts(ctx, before, after));
  const Id x = cropped(b, ctx.in(0), before, after);
  if (mode == "constant") {
    double value = ctx.float_attribute("value", 0);
    if (ctx.opset() >= 11 && ctx.has(2)) {
      REEF_ASSIGN_OR_RETURN(const std::vector<float> given, ctx.floats(2));
      value = given.empty() ? 0 : given[0];
    }
    const ir::DataType type = b.type(x);
    const bool is_direct = is_float(type) || type == ir::DataType::kInt32 || type == ir::DataType::kInt64;
    const Id wide = is_direct ? x : widened(b, x);
    return ctx.give(cast(b, pad_constant(b, wide, before, after, value), type));
  }
  REEF_REQUIRE(mode == "reflect" || mode == "edge" || mode == "wrap", "attribute mode is '{}'", mode);
  bool is_mirror = mode == "reflect";
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::int64_t size = b.dim(x, static_cast<int>(i));
    REEF_REQUIRE(size > 0 || (before[i] == 0 && after[i] == 0), "axis {} is empty; there is nothing to pad with", i);
    is_mirror = is_mirror && before[i] < size && after[i] < size;
  }
  if (is_mirror) {
    Dims amounts;
    for (std::size_t i = 0; i < before.size(); ++i) amounts.insert(amounts.end(), {before[i], after[i]});
    ir::Attributes attributes;
    attributes.set("mode", ir::EnumName{"REFLECT"});
    return ctx.give(b.emit(Op::MIRROR_PAD, {x, b.ints(amounts, {static_cast<std::int32_t>(before.size()), 2})},
                           b.type(x), std::move(attributes)));
  }
  Id y = x;
  for (std::size_t i = 0; i < before.size(); ++i) {
    y = pad_by_gather(b, y, static_cast<int>(i), before[i], after[i], mode);
  }
  return ctx.give(y);
}

Status convert_tile(NodeContext& ctx, GraphBuilder& b) {
  if (ctx.is_open(1)) return open_tile(ctx);
  REEF_ASSIGN_OR_RETURN(const Dims times, ctx.ints(1));
  REEF_REQUIRE(static_cast<int>(times.size()) == b.rank(ctx.in(0)), "repeats has {} numbers for {} dimensions",
               times.size(), b.rank(ctx.in(0)));
  for (const std::int64_t each : times) REEF_REQUIRE(each >= 0 && each < (1 << 30), "repeats has the value {}", each);
  return ctx.give(tile(b, ctx.in(0), times));
}

Status convert_depth_to_space(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const std::int64_t block = ctx.int_attribute("blocksize", 0);
  REEF_REQUIRE(b.rank(x) == 4 && block >= 1 && block < 4096 && b.dim(x, 1) % (block * block) == 0,
               "attribute blocksize is {}, the input {}", block, b.shape(x).to_string());
  const std::string mode = ctx.string_attribute("mode", "DCR");
  const ir::Shape s = b.shape(x);
  if (mode == "DCR") {
    ir::Attributes attributes;
    attributes.set("block_size", block);
    return ctx.give(
        channels_first(b, b.emit(Op::DEPTH_TO_SPACE, {channels_last(b, x)}, b.type(x), std::move(attributes))));
  }
  REEF_REQUIRE(mode == "CRD", "attribute mode is '{}'", mode);
  // PyTorch's pixel shuffle: the block's axes are the inner part of the channels. Bring them to the outside.
  const std::int64_t channels = s[1] / (block * block);
  const Id parts = reshape(b, channels_last(b, x), {s[0] * s[2] * s[3], channels, block * block});
  const Id outer = reshape(b, transpose(b, parts, {0, 2, 1}), {s[0], s[2], s[3], s[1]});
  ir::Attributes attributes;
  attributes.set("block_size", block);
  return ctx.give(channels_first(b, b.emit(Op::DEPTH_TO_SPACE, {outer}, b.type(x), std::move(attributes))));
}

Status convert_space_to_depth(NodeContext& ctx, GraphBuilder& b) {
  const std::int64_t block = ctx.int_attribute("blocksize", 0);
  REEF_REQUIRE(b.rank(ctx.in(0)) == 4 && block >= 1 && block < (1 << 20), "attribute blocksize is {}, the input {}",
               block, b.shape(ctx.in(0)).to_string());
  ir::Attributes attributes;
  attributes.set("block_size", block);
  const Id last = channels_last(b, ctx.in(0));
  Id deep = b.emit(Op::SPACE_TO_DEPTH, {last}, b.type(last), std::move(attributes));
  const std::string mode = ctx.string_attribute("mode", "DCR");
  REEF_REQUIRE(mode == "DCR" || mode == "CRD", "attribute mode is '{}'", mode);
  if (mode == "CRD" && b.status().ok()) {
    // The block's axes are the outer part of the channels; they shall be the inner one.
    const ir::Shape s = b.shape(deep);
    const Id parts = reshape(b, deep, {s.product(0, 3), block * block, s[3] / (block * block)});
    deep = reshape(b, transpose(b, parts, {0, 2, 1}), dims_of(s));
  }
  return ctx.give(channels_first(b, deep));
}

}  // namespace reef::import

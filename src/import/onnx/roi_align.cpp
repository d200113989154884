// SPDX-License-Identifier: Apache-2.0
// RoiAlign with a known number of samples per bin (sampling_ratio above 0): positions are computed, pixels picked by
// GATHER, mixed bilinearly, and averaged (or their maximum taken) per bin.
#include "import/onnx/converter.h"

namespace reef::import {
namespace {

struct Corners {
  Id low = kAbsent, high = kAbsent, low_weight = kAbsent, high_weight = kAbsent;
};

// Neighbours of positions along an axis of `size` pixels. Positions beyond -1 and size count as 0.
Corners corners(GraphBuilder& b, Id x, std::int32_t size) {
  const auto number = [&](double value) { return b.scalar(ir::DataType::kFloat32, value); };
  const Id is_used = compare(b, Op::LOGICAL_AND, compare(b, Op::GREATER_EQUAL, x, number(-1)),
                             compare(b, Op::LESS_EQUAL, x, number(size)));
  const Id mask = cast(b, is_used, ir::DataType::kFloat32);
  const Id inside = minimum(b, maximum(b, x, number(0)), number(size - 1));
  Corners c;
  c.low = unary(b, Op::FLOOR, inside);
  c.high = minimum(b, add(b, c.low, 1.0), number(size - 1));
  const Id part = sub(b, inside, c.low);
  c.low_weight = mul(b, subtract_from(b, 1.0, part), mask);
  c.high_weight = mul(b, part, mask);
  return c;
}

// Positions of all samples along one axis: [rois, bins * samples].
Id sample_positions(GraphBuilder& b, Id start, Id length, std::int64_t bins, std::int64_t samples) {
  std::vector<float> steps;
  for (std::int64_t i = 0; i < bins * samples; ++i) {
    steps.push_back(static_cast<float>((static_cast<double>(i) + 0.5) / static_cast<double>(bins * samples)));
  }
  const Id fractions = b.floats(steps, shape_from({1, bins * samples}));
  return add(b, start, mul(b, length, fractions));
}

}  // namespace

Status convert_roi_align(NodeContext& ctx, GraphBuilder& b) {
  const ir::Shape shape = b.shape(ctx.in(0));
  REEF_REQUIRE(shape.rank() == 4 && b.rank(ctx.in(1)) == 2 && b.dim(ctx.in(1), 1) == 4, "inputs have wrong shapes");
  const std::int64_t rois = b.dim(ctx.in(1), 0);
  const std::int64_t rows = ctx.int_attribute("output_height", 1), columns = ctx.int_attribute("output_width", 1);
  const std::int64_t samples = ctx.int_attribute("sampling_ratio", 0);
  if (samples < 1)
    return unsupported("attribute sampling_ratio is 0 (adaptive), which is not converted; give a number");
  REEF_REQUIRE(rows >= 1 && columns >= 1 && rows < 4096 && columns < 4096 && samples < 256 &&
                   rows * columns * samples * samples < (1 << 20),
               "the result is too large");
  const double scale = ctx.float_attribute("spatial_scale", 1);
  const bool is_half_pixel =
      ctx.opset() >= 16 && ctx.string_attribute("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double offset = is_half_pixel ? 0.5 : 0;
  const Id boxes = sub(b, mul(b, ctx.in(1), scale), offset);
  const auto edge = [&](int i) { return slice_axis(b, boxes, 1, i, 1); };
  const auto length = [&](int from, int to) {
    const Id plain = sub(b, edge(to), edge(from));
    return is_half_pixel ? plain : maximum(b, plain, b.scalar(ir::DataType::kFloat32, 1));
  };
  const Corners y = corners(b, sample_positions(b, edge(1), length(1, 3), rows, samples), shape[2]);
  const Corners x = corners(b, sample_positions(b, edge(0), length(0, 2), columns, samples), shape[3]);
  const std::int64_t h = rows * samples, w = columns * samples;
  const Id pixels = reshape(b, channels_last(b, ctx.in(0)), {std::int64_t{shape[0]} * shape[2] * shape[3], shape[1]});
  const Id image = mul(b, cast(b, ctx.in(2), ir::DataType::kFloat32), static_cast<double>(shape[2]) * shape[3]);
  const auto part = [&](Id py, Id wy, Id px, Id wx) {
    const Id line = add(b, mul(b, reshape(b, py, {rois, h, 1}), shape[3]), reshape(b, image, {rois, 1, 1}));
    const Id index = cast(b, add(b, line, reshape(b, px, {rois, 1, w})), ir::DataType::kInt32);
    const Id weight = mul(b, reshape(b, wy, {rois, h, 1}), reshape(b, wx, {rois, 1, w}));
    return mul(b, gather(b, pixels, index, 0), reshape(b, weight, {rois, h, w, 1}));
  };
  const std::string mode = ctx.string_attribute("mode", "avg");
  REEF_REQUIRE(mode == "avg" || mode == "max", "attribute mode is '{}'", mode);
  const Id parts[] = {part(y.low, y.low_weight, x.low, x.low_weight), part(y.low, y.low_weight, x.high, x.high_weight),
                      part(y.high, y.high_weight, x.low, x.low_weight),
                      part(y.high, y.high_weight, x.high, x.high_weight)};
  // The maximum is over the weighted corners of all samples, as ONNX defines it.
  const Op join = mode == "avg" ? Op::ADD : Op::MAXIMUM;
  const Id mixed = binary(b, join, binary(b, join, parts[0], parts[1]), binary(b, join, parts[2], parts[3]));
  // A row holds the columns' bins, each with its samples and channels: rank 6 is avoided.
  const Id by_column = reshape(b, mixed, {rois * h * columns, samples, shape[1]});
  const Op over = mode == "avg" ? Op::MEAN : Op::REDUCE_MAX;
  const Id by_row = reshape(b, reduce(b, over, by_column, {1}, false), {rois * rows, samples, columns * shape[1]});
  const Id result = reshape(b, reduce(b, over, by_row, {1}, false), {rois, rows, columns, shape[1]});
  return ctx.give(channels_first(b, result));
}

}  // namespace reef::import

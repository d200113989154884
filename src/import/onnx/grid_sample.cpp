// SPDX-License-Identifier: Apache-2.0
// GridSample over images: pixels are picked by GATHER at computed positions and mixed by computed weights.
#include "import/onnx/converter.h"

namespace reef::import {
namespace {

struct Sampler {
  GraphBuilder& b;
  Id rows = kAbsent;  // the images as [n * h * w, c]
  std::int32_t batch = 1, height = 1, width = 1;
  Dims grid = {};  // [n, out h, out w]
  std::string padding = {};
  bool align_corners = false;

  Id number(double value) { return b.scalar(ir::DataType::kFloat32, value); }
  Id limited(Id x, double low, double high) { return minimum(b, maximum(b, x, number(low)), number(high)); }

  // -1..1 to pixels.
  Id pixels(Id x, std::int32_t size) {
    if (align_corners) return mul(b, add(b, x, 1.0), (size - 1) / 2.0);
    return mul(b, sub(b, mul(b, add(b, x, 1.0), size), 1.0), 0.5);
  }

  // Positions outside are turned back at the image's border.
  Id reflected(Id x, std::int32_t size) {
    const double low = align_corners ? 0 : -0.5, high = align_corners ? size - 1 : size - 0.5;
    const double range = high - low;
    if (range <= 0) return mul(b, x, 0.0);
    const Id folded = binary(b, Op::FLOOR_MOD, unary(b, Op::ABS, sub(b, x, low)), number(2 * range));
    return add(b, minimum(b, folded, subtract_from(b, 2 * range, folded)), low);
  }

  Id inside(Id x, std::int32_t size) {
    if (padding == "border") return limited(x, 0, size - 1);
    if (padding == "reflection") return limited(reflected(x, size), 0, size - 1);
    return x;
  }

  // 1 where 0 <= x < size.
  Id is_inside(Id x, std::int32_t size) {
    const Id above = compare(b, Op::GREATER_EQUAL, x, number(0)),
             below = compare(b, Op::LESS_EQUAL, x, number(size - 1));
    return cast(b, compare(b, Op::LOGICAL_AND, above, below), ir::DataType::kFloat32);
  }

  // Pixels at whole positions y, x: [n, out h, out w, c].
  Id fetch(Id y, Id x) {
    y = inside(y, height);
    x = inside(x, width);
    const Id at_y = limited(y, 0, height - 1), at_x = limited(x, 0, width - 1);
    const Id position = add(b, mul(b, at_y, width), at_x);
    std::vector<float> offsets;
    for (std::int32_t n = 0; n < batch; ++n)
      offsets.push_back(static_cast<float>(n) * static_cast<float>(height * width));
    const Id first = b.floats(offsets, {batch, 1, 1});
    const Id index = cast(b, add(b, position, first), ir::DataType::kInt32);
    const Id picked = gather(b, rows, index, 0);
    if (padding != "zeros") return picked;
    return mul(b, picked, weight(mul(b, is_inside(y, height), is_inside(x, width))));
  }

  // [n, out h, out w] -> [n, out h, out w, 1]
  Id weight(Id x) {
    Dims dims = grid;
    dims.push_back(1);
    return reshape(b, x, dims);
  }

  Id linear(Id y, Id x) {
    y = inside(y, height);
    x = inside(x, width);
    const Id y0 = unary(b, Op::FLOOR, y), x0 = unary(b, Op::FLOOR, x);
    const Id dy = sub(b, y, y0), dx = sub(b, x, x0);
    const Id y1 = add(b, y0, 1.0), x1 = add(b, x0, 1.0);
    const auto part = [&](Id py, Id px, Id wy, Id wx) { return mul(b, fetch(py, px), weight(mul(b, wy, wx))); };
    const Id ndy = subtract_from(b, 1.0, dy), ndx = subtract_from(b, 1.0, dx);
    return add(b, add(b, part(y0, x0, ndy, ndx), part(y0, x1, ndy, dx)),
               add(b, part(y1, x0, dy, ndx), part(y1, x1, dy, dx)));
  }

  // Cubic weights of the pixels at -1, 0, 1, 2 for a position t behind pixel 0; a = -0.75, as PyTorch.
  std::vector<Id> cubic_weights(Id t) {
    constexpr double a = -0.75;
    const auto near = [&](Id x) {  // |x| <= 1
      return add(b, mul(b, mul(b, sub(b, mul(b, x, a + 2), a + 3), x), x), 1.0);
    };
    const auto far = [&](Id x) {  // 1 < |x| < 2
      return sub(b, mul(b, add(b, mul(b, sub(b, mul(b, x, a), 5 * a), x), 8 * a), x), 4 * a);
    };
    const Id rest = subtract_from(b, 1.0, t);
    return {far(add(b, t, 1.0)), near(t), near(rest), far(add(b, rest, 1.0))};
  }

  Id cubic(Id y, Id x) {
    const Id y0 = unary(b, Op::FLOOR, y), x0 = unary(b, Op::FLOOR, x);
    const std::vector<Id> wy = cubic_weights(sub(b, y, y0)), wx = cubic_weights(sub(b, x, x0));
    Id sum = kAbsent;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t k = 0; k < 4; ++k) {
        const Id pixel = fetch(add(b, y0, static_cast<double>(i) - 1), add(b, x0, static_cast<double>(k) - 1));
        const Id part = mul(b, pixel, weight(mul(b, wy[i], wx[k])));
        sum = sum == kAbsent ? part : add(b, sum, part);
      }
    }
    return sum;
  }
};

}  // namespace

Status convert_grid_sample(NodeContext& ctx, GraphBuilder& b) {
  const ir::Shape shape = b.shape(ctx.in(0)), grid = b.shape(ctx.in(1));
  if (shape.rank() != 4 || grid.rank() != 4) return unsupported("it is converted for images (four dimensions) only");
  REEF_REQUIRE(grid[0] == shape[0] && grid[3] == 2, "grid {} does not fit the input {}", grid.to_string(),
               shape.to_string());
  if (std::int64_t{shape[0]} * shape[2] * shape[3] >= (1 << 24)) {
    return unsupported("positions in images of more than 2^24 pixels are not exact in float32");
  }
  Sampler s{b};
  s.batch = shape[0], s.height = shape[2], s.width = shape[3];
  s.grid = {grid[0], grid[1], grid[2]};
  s.padding = ctx.string_attribute("padding_mode", "zeros");
  REEF_REQUIRE(s.padding == "zeros" || s.padding == "border" || s.padding == "reflection",
               "attribute padding_mode is '{}'", s.padding);
  s.align_corners = ctx.int_attribute("align_corners", 0) != 0;
  s.rows = reshape(b, channels_last(b, ctx.in(0)), {std::int64_t{shape[0]} * shape[2] * shape[3], shape[1]});
  const Id x = s.pixels(reshape(b, slice_axis(b, ctx.in(1), 3, 0, 1), s.grid), s.width);
  const Id y = s.pixels(reshape(b, slice_axis(b, ctx.in(1), 3, 1, 1), s.grid), s.height);
  const std::string mode = ctx.string_attribute("mode", ctx.opset() >= 20 ? "linear" : "bilinear");
  Id result = kAbsent;
  if (mode == "nearest") {
    result = s.fetch(unary(b, Op::ROUND, y), unary(b, Op::ROUND, x));
  } else if (mode == "bilinear" || mode == "linear") {
    result = s.linear(y, x);
  } else if (mode == "bicubic" || mode == "cubic") {
    result = s.cubic(y, x);
  } else {
    return invalid_input("attribute mode is '{}'", mode);
  }
  return ctx.give(channels_first(b, result));
}

}  // namespace reef::import

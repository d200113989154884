// SPDX-License-Identifier: Apache-2.0
// Pools: MAX_POOL_2D and AVERAGE_POOL_2D. Padding that TFLite's rule does not give is done before, with the lowest
// number or 0; averages are then corrected by a constant map of how many elements count.
//
// One spatial axis is two of which one has size 1; three are a pool over two followed by one over the first. Dilated
// windows, which TFLite has not, are the largest of strided slices, axis by axis.
#include <limits>

#include "import/onnx/window.h"
#include "ir/op.h"

namespace reef::import {
namespace {

Id pool_2d(GraphBuilder& b, OpName op, Id x, const Window& window, std::string_view padding) {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{std::string(padding)});
  attributes.set("stride_w", window[1].stride);
  attributes.set("stride_h", window[0].stride);
  attributes.set("filter_width", window[1].kernel);
  attributes.set("filter_height", window[0].kernel);
  return b.emit(op, {x}, b.type(x), std::move(attributes));
}

// The largest (or sum) of one slice of x per element of the window, first along rows, then along columns. x is padded
// already, [n, h, w, c].
Id pool_by_slices(GraphBuilder& b, OpName op, Id x, const Window& window) {
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const WindowAxis& w = window[axis];
    const Dims dims = dims_of(b.shape(x));
    Id result = kAbsent;
    for (std::int64_t k = 0; k < w.kernel; ++k) {
      Dims begin(4, 0), end = dims, step(4, 1);
      begin[axis + 1] = k * w.dilation;
      end[axis + 1] = begin[axis + 1] + (w.output - 1) * w.stride + 1;
      step[axis + 1] = w.stride;
      const Id part = strided_slice(b, x, begin, end, step);
      result = result == kAbsent ? part : binary(b, op, result, part);
    }
    x = result;
  }
  return x;
}

bool is_dilated(const Window& window) { return window[0].dilation != 1 || window[1].dilation != 1; }

Id max_pool_2d(GraphBuilder& b, Id x, const Window& window) {
  const bool is_integer = !is_float(b.type(x));
  const double lowest = b.type(x) == ir::DataType::kUInt8  ? 0
                        : b.type(x) == ir::DataType::kInt8 ? -128
                                                           : std::numeric_limits<float>::lowest();
  if (is_integer || is_dilated(window)) {
    const Id wide = padded(b, widened(b, x), window, lowest);
    return cast(b, pool_by_slices(b, Op::MAXIMUM, wide, window), b.type(x));
  }
  const std::string_view padding = tflite_padding(window);
  if (!padding.empty()) return pool_2d(b, Op::MAX_POOL_2D, x, window, padding);
  return pool_2d(b, Op::MAX_POOL_2D, padded(b, x, window, lowest), window, "VALID");
}

// How many elements of window `index` along an axis count.
std::int64_t counted(const WindowAxis& axis, std::int64_t index, bool include_padding) {
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < axis.kernel; ++k) {
    const std::int64_t at = index * axis.stride + k * axis.dilation - axis.before;
    const bool is_inside = at >= 0 && at < axis.input;
    const bool is_padding = at >= -axis.before && at < axis.input + axis.after;
    if (is_inside || (include_padding && is_padding)) ++count;
  }
  return count;
}

Id average_pool_2d(GraphBuilder& b, Id x, const Window& window, bool include_padding) {
  const std::string_view padding = tflite_padding(window);
  // TFLite leaves padding out of the count.
  const bool tflite_counts_alike = padding == "VALID" || (padding == "SAME" && !include_padding);
  if (tflite_counts_alike && !is_dilated(window)) return pool_2d(b, Op::AVERAGE_POOL_2D, x, window, padding);
  const double whole = static_cast<double>(window[0].kernel * window[1].kernel);
  std::vector<float> factors;
  bool is_uniform = true;
  for (std::int64_t y = 0; y < window[0].output; ++y) {
    for (std::int64_t i = 0; i < window[1].output; ++i) {
      const auto count = counted(window[0], y, include_padding) * counted(window[1], i, include_padding);
      is_uniform = is_uniform && count == window[0].kernel * window[1].kernel;
      factors.push_back(static_cast<float>(whole / static_cast<double>(std::max<std::int64_t>(count, 1))));
    }
  }
  const Id wide = padded(b, x, window, 0);
  Id result = is_dilated(window) ? mul(b, pool_by_slices(b, Op::ADD, wide, window), 1.0 / whole)
                                 : pool_2d(b, Op::AVERAGE_POOL_2D, wide, window, "VALID");
  if (is_uniform) return result;
  return mul(b, result, b.floats(factors, shape_from({1, window[0].output, window[1].output, 1})));
}

using Pool2d = std::function<Id(Id x, const Window& window)>;

// x [n, c, spatial...] -> the same with pooled axes. `pool` works on [n, h, w, c]. For three axes it must be one that
// can be done axis by axis.
Id pool_any(GraphBuilder& b, Id x, const Window& window, const Pool2d& pool) {
  if (window.size() == 2) return channels_first(b, pool(channels_last(b, x), window));
  if (window.size() == 1) {
    const Id row = channels_last(b, x);
    const Id y = pool(reshape(b, row, {b.dim(row, 0), 1, b.dim(row, 1), b.dim(row, 2)}), {WindowAxis(), window[0]});
    return channels_first(b, reshape(b, y, {b.dim(y, 0), b.dim(y, 2), b.dim(y, 3)}));
  }
  const ir::Shape dims = b.shape(x);  // [n, c, d, h, w]
  const WindowAxis& height = window[1];
  Id y = channels_last(b, x);
  if (height.kernel == height.stride && height.dilation == 1 && height.before == 0 && height.after == 0) {
    // No window sees two images that stand below each other: the chip takes one image at a time.
    const std::int64_t rows = height.output * height.stride;
    const Id image = reshape(b, slice_axis(b, y, 2, 0, rows), {dims[0], dims[2] * rows, dims[4], dims[1]});
    WindowAxis all = height;
    all.input = dims[2] * rows;
    all.output = dims[2] * height.output;
    y = pool(image, {all, window[2]});
  } else {
    y = pool(reshape(b, y, {dims[0] * dims[2], dims[3], dims[4], dims[1]}), {window[1], window[2]});
  }
  const std::int64_t row = window[1].output * window[2].output;
  y = pool(reshape(b, y, {dims[0], dims[2], row, dims[1]}), {window[0], WindowAxis{.input = row, .output = row}});
  return channels_first(b, reshape(b, y, {dims[0], window[0].output, window[1].output, window[2].output, dims[1]}));
}

Result<Window> pool_window(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  const int spatial = ctx.b.rank(ctx.in(0)) - 2;
  if (spatial < 1 || spatial > 3) {
    return unsupported("the input has {} dimensions; pools over 1 to 3 spatial axes are converted", spatial + 2);
  }
  Dims input = dims_of(ctx.b.shape(ctx.in(0)));
  input.erase(input.begin(), input.begin() + 2);
  REEF_ASSIGN_OR_RETURN(Window window, read_window(ctx, input, ctx.ints_attribute("kernel_shape")));
  std::int64_t elements = 1, slices = 0;
  bool has_dilation = false;
  for (const WindowAxis& axis : window) {
    elements *= axis.kernel;
    slices += axis.kernel;
    has_dilation = has_dilation || axis.dilation != 1;
    REEF_REQUIRE(elements <= (1 << 24), "the window has more than 2^24 elements");
  }
  const bool is_sliced = has_dilation || !is_float(ctx.b.type(ctx.in(0)));
  if ((is_sliced && slices > 4096) || (ctx.wants(1) && elements > 4096)) {
    return unsupported("a window of {} elements with dilations, integers or Indices is not converted", elements);
  }
  return window;
}

// The position of the largest element of every window in the input as one row: slices of positions go the way of the
// slices of values, and the position of the first largest is kept.
Id max_pool_indices(GraphBuilder& b, Id x, const Window& window, bool is_column_major) {
  const ir::Shape dims = b.shape(x);  // [n, h, w, c]
  Dims positions;
  const std::int64_t rows = dims[1], columns = dims[2], plane = rows * columns;
  for (std::int64_t n = 0; n < dims[0]; ++n) {
    for (std::int64_t y = 0; y < rows; ++y) {
      for (std::int64_t i = 0; i < columns; ++i) {
        for (std::int64_t c = 0; c < dims[3]; ++c) {
          positions.push_back((n * dims[3] + c) * plane + (is_column_major ? i * rows + y : y * columns + i));
        }
      }
    }
  }
  const Id where = padded(b, b.ints(positions, dims, ir::DataType::kInt32), window, 0);
  const Id values = padded(b, x, window, std::numeric_limits<float>::lowest());
  const Dims padded_dims = dims_of(b.shape(values));
  Id best = kAbsent, best_at = kAbsent;
  for (std::int64_t ky = 0; ky < window[0].kernel; ++ky) {
    for (std::int64_t kx = 0; kx < window[1].kernel; ++kx) {
      const std::int64_t y0 = ky * window[0].dilation, x0 = kx * window[1].dilation;
      const Dims begin = {0, y0, x0, 0};
      const Dims end = {padded_dims[0], y0 + (window[0].output - 1) * window[0].stride + 1,
                        x0 + (window[1].output - 1) * window[1].stride + 1, padded_dims[3]};
      const Dims step = {1, window[0].stride, window[1].stride, 1};
      const Id value = strided_slice(b, values, begin, end, step), at = strided_slice(b, where, begin, end, step);
      const Id is_better = best == kAbsent ? kAbsent : compare(b, Op::GREATER, value, best);
      best_at = best == kAbsent ? at : select(b, is_better, at, best_at);
      best = best == kAbsent ? value : maximum(b, value, best);
    }
  }
  return cast(b, best_at, ir::DataType::kInt64);
}

}  // namespace

Status convert_max_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Window window, pool_window(ctx));
  ctx.out(0, pool_any(b, ctx.in(0), window, [&](Id x, const Window& w) { return max_pool_2d(b, x, w); }));
  if (!ctx.wants(1)) return ok_status();
  if (window.size() != 2 || !is_float(b.type(ctx.in(0))) || b.elements(ctx.in(0)) > (1 << 24)) {
    return unsupported("output Indices is converted for float32 inputs with two spatial axes only");
  }
  const bool is_column_major = ctx.int_attribute("storage_order", 0) != 0;
  ctx.out(1, channels_first(b, max_pool_indices(b, channels_last(b, ctx.in(0)), window, is_column_major)));
  return ok_status();
}

Status convert_average_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Window window, pool_window(ctx));
  const bool include_padding = ctx.int_attribute("count_include_pad", 0) != 0;
  return ctx.give(
      pool_any(b, ctx.in(0), window, [&](Id x, const Window& w) { return average_pool_2d(b, x, w, include_padding); }));
}

// The p-norm of every window: the average of |x|^p, times the number of elements, to the 1/p.
Status convert_lp_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_ASSIGN_OR_RETURN(const Window window, pool_window(ctx));
  const double p = static_cast<double>(ctx.int_attribute("p", 2));
  REEF_REQUIRE(p >= 1, "attribute p is {}", p);
  double count = 1;
  for (const WindowAxis& axis : window) count *= static_cast<double>(axis.kernel);
  const Id powers = p == 2 ? unary(b, Op::SQUARE, ctx.in(0)) : power(b, unary(b, Op::ABS, ctx.in(0)), p);
  const Id means = pool_any(b, powers, window, [&](Id x, const Window& w) { return average_pool_2d(b, x, w, true); });
  const Id sums = mul(b, means, count);
  return ctx.give(p == 2 ? unary(b, Op::SQRT, sums) : power(b, sums, 1 / p));
}

namespace {

Result<Dims> spatial_axes(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(1));
  REEF_REQUIRE(ctx.b.rank(ctx.in(0)) >= 3, "the input has no spatial axes");
  Dims axes;
  for (int i = 2; i < ctx.b.rank(ctx.in(0)); ++i) axes.push_back(i);
  return axes;
}

// Over [n, spatial..., c], as TFLite's models have it.
Id reduce_spatial(GraphBuilder& b, OpName op, Id x) {
  Dims axes;
  for (int i = 1; i < b.rank(x) - 1; ++i) axes.push_back(i);
  return channels_first(b, reduce(b, op, channels_last(b, x), axes, true));
}

}  // namespace

Status convert_global_average_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(spatial_axes(ctx).status());
  Dims axes;
  const Id last = channels_last(b, ctx.in(0));
  for (int i = 1; i < b.rank(last) - 1; ++i) axes.push_back(i);
  return ctx.give(channels_first(b, reduce(b, Op::MEAN, last, axes, true)));
}

Status convert_global_max_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(spatial_axes(ctx).status());
  return ctx.give(reduce_spatial(b, Op::REDUCE_MAX, ctx.in(0)));
}

Status convert_global_lp_pool(NodeContext& ctx, GraphBuilder& b) {
  REEF_RETURN_IF_ERROR(spatial_axes(ctx).status());
  const double p = static_cast<double>(ctx.int_attribute("p", 2));
  REEF_REQUIRE(p >= 1, "attribute p is {}", p);
  const Id sums = reduce_spatial(b, Op::SUM, power(b, unary(b, Op::ABS, ctx.in(0)), p));
  return ctx.give(power(b, sums, 1 / p));
}

// Scatters values to the positions that MaxPool gave.
Status convert_max_unpool(NodeContext& ctx, GraphBuilder& b) {
  const Id x = ctx.in(0);
  const ir::Shape dims = b.shape(x);
  const int spatial = dims.rank() - 2;
  REEF_REQUIRE(spatial >= 1, "the input has no spatial axes");
  const Dims kernel = ctx.ints_attribute("kernel_shape");
  Dims strides = ctx.ints_attribute("strides"), pads = ctx.ints_attribute("pads");
  if (strides.empty()) strides.assign(kernel.size(), 1);
  if (pads.empty()) pads.assign(2 * kernel.size(), 0);
  const auto count = static_cast<std::size_t>(spatial);
  REEF_REQUIRE(kernel.size() == count && strides.size() == count && pads.size() == 2 * count,
               "attributes kernel_shape, strides and pads do not fit {} spatial axes", spatial);
  Dims whole = {dims[0], dims[1]};
  for (std::size_t i = 0; i < count; ++i) {
    const auto is_small = [](std::int64_t value) { return value >= 0 && value < (1 << 20); };
    REEF_REQUIRE(is_small(kernel[i]) && is_small(strides[i]) && is_small(pads[i]) && is_small(pads[i + count]),
                 "attributes kernel_shape, strides or pads have a number out of range");
    whole.push_back((dims[static_cast<int>(i) + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + count]);
  }
  Dims wanted = whole;
  if (ctx.has(2)) {
    REEF_ASSIGN_OR_RETURN(wanted, ctx.ints(2));
    REEF_REQUIRE(wanted.size() == whole.size(), "input 2 has {} sizes; {} are needed", wanted.size(), whole.size());
  }
  // Positions count in the shape that MaxPool saw: the wanted one if it is given.
  std::int64_t total = 1;
  for (const std::int64_t size : wanted) {
    REEF_REQUIRE(size >= 1 && size < (1 << 28), "the result would have a dimension of size {}", size);
    total *= size;
    REEF_REQUIRE(total < (std::int64_t{1} << 31), "the result would have too many elements");
  }
  std::int64_t plain = 1;
  for (const std::int64_t size : whole) {
    REEF_REQUIRE(size >= 1 && size < (1 << 28), "the result would have a dimension of size {}", size);
    plain *= size;
    REEF_REQUIRE(plain < (std::int64_t{1} << 31), "the result would have too many elements");
  }
  const Id at = reshape(b, cast(b, ctx.in(1), ir::DataType::kInt32), {dims.elements(), 1});
  const Id values = reshape(b, x, {dims.elements()});
  Id y = reshape(b, scatter_nd(b, at, values, {plain}), whole);
  Dims before(whole.size(), 0), after;
  for (std::size_t i = 0; i < whole.size(); ++i) after.push_back(std::max<std::int64_t>(0, wanted[i] - whole[i]));
  y = pad_constant(b, y, before, after, 0);
  return ctx.give(slice(b, y, before, wanted));
}

}  // namespace reef::import

// SPDX-License-Identifier: Apache-2.0
// Conv: CONV_2D, or DEPTHWISE_CONV_2D where every group has one input channel.
//
// One spatial axis is two of which one has size 1. Three are a two-dimensional convolution of one large image, on which
// the images of all depths stand below each other.
#include <algorithm>

#include "import/onnx/shared_parts.h"
#include "import/onnx/window.h"
#include "ir/op.h"

namespace reef::import {
namespace {

ir::Attributes conv_attributes(const Window& window, std::string_view padding) {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{std::string(padding)});
  attributes.set("stride_w", window[1].stride);
  attributes.set("stride_h", window[0].stride);
  attributes.set("dilation_w_factor", window[1].dilation);
  attributes.set("dilation_h_factor", window[0].dilation);
  return attributes;
}

// x [n, h, w, c], weights [o, c / groups, kh, kw], bias [o] or kAbsent.
Id convolution_2d(GraphBuilder& b, Id x, Id weights, Id bias, const Window& window, std::int64_t groups) {
  std::string_view padding = tflite_padding(window);
  if (padding.empty()) {
    x = padded(b, x, window, 0);
    padding = "VALID";
  }
  // TFLite's runtime refuses one that is marked as left out.
  if (bias == kAbsent) bias = b.filled(ir::DataType::kFloat32, {b.dim(weights, 0)}, 0);
  ir::Attributes attributes = conv_attributes(window, padding);
  const std::int64_t channels = b.dim(x, 3);
  if (groups > 1 && groups == channels) {
    attributes.set("depth_multiplier", b.dim(weights, 0) / channels);
    // [o, 1, kh, kw] -> [1, kh, kw, o]
    return b.emit(Op::DEPTHWISE_CONV_2D, {x, transpose(b, weights, {1, 2, 3, 0}), bias}, b.type(x),
                  std::move(attributes));
  }
  return b.emit(Op::CONV_2D, {x, transpose(b, weights, {0, 2, 3, 1}), bias}, b.type(x), std::move(attributes));
}

// One input channel and an axis along which the window takes one place: its places are channels of a depthwise
// convolution with the same weights for each. x [n, h, w, d, 1], weights [o, 1, kh, kw, 1]: [n, h', w', d, o].
Id convolution_of_columns(GraphBuilder& b, Id x, Id weights, Id bias, const Window& window) {
  const Dims dims = dims_of(b.shape(x)), w = dims_of(b.shape(weights));
  const Id image = reshape(b, x, {dims[0], dims[1], dims[2], dims[3]});
  const Id repeated = tile(b, reshape(b, weights, {w[0], 1, w[2], w[3]}), {dims[3], 1, 1, 1});
  if (bias != kAbsent) bias = tile(b, bias, {dims[3]});
  const Id y = convolution_2d(b, image, repeated, bias, {window[0], window[1]}, dims[3]);
  return reshape(b, y, {dims[0], window[0].output, window[1].output, dims[3], w[0]});
}

// x [n, d, h, w, c], weights [o, c / groups, kd, kh, kw]. Images of all depths stand below each other, far enough apart
// that no window sees two of them, so that one two-dimensional convolution does them all; those at the kernel's kd
// depths are channels beside each other (with groups: a sum of kd convolutions). The chip takes one image at a time,
// and up to four dimensions.
Id convolution_3d(GraphBuilder& b, Id x, Id weights, Id bias, const Window& window, std::int64_t groups) {
  const WindowAxis &depth = window[0], &height = window[1];
  const Dims dims = dims_of(b.shape(x));
  const std::int64_t covered =
      std::max(height.before + height.input, (height.output - 1) * height.stride + height.reach());
  const std::int64_t steps = (covered + height.stride - 1) / height.stride;  // of the window, for each image
  const std::int64_t rows = steps * height.stride, more = std::max<std::int64_t>(0, height.reach() - height.stride);
  const Id flat = reshape(b, x, {dims[0], dims[1], dims[2], dims[3] * dims[4]});
  const Id spaced = pad_constant(b, flat, {0, depth.before, height.before, 0},
                                 {0, depth.after, rows - dims[2] - height.before, 0}, 0);
  std::vector<Id> parts;
  for (std::int64_t k = 0; k < depth.kernel; ++k) {
    const std::int64_t begin = k * depth.dilation, end = begin + (depth.output - 1) * depth.stride + 1;
    const Id images =
        strided_slice(b, spaced, {0, begin, 0, 0}, {dims[0], end, rows, dims[3] * dims[4]}, {1, depth.stride, 1, 1});
    parts.push_back(reshape(b, images, {dims[0], depth.output * rows, dims[3], dims[4]}));
  }
  const auto filled = [&](Id image) { return pad_constant(b, image, {0, 0, 0, 0}, {0, more, 0, 0}, 0); };
  const Window plane = {{.input = depth.output * rows + more,
                         .kernel = height.kernel,
                         .stride = height.stride,
                         .dilation = height.dilation,
                         .output = depth.output * steps},
                        window[2]};
  const ir::Shape w = b.shape(weights);
  Id y = kAbsent;
  if (groups == 1) {
    // [o, c, kd, kh, kw] -> [o, kd * c, kh, kw]
    const Id filters = reshape(b, transpose(b, weights, {0, 2, 1, 3, 4}), {w[0], w[2] * w[1], w[3], w[4]});
    y = convolution_2d(b, filled(parts.size() == 1 ? parts[0] : concat(b, parts, 3)), filters, bias, plane, 1);
  } else {
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Id filters = slice_axis(b, weights, 2, static_cast<std::int64_t>(k), 1);
      const Id part = convolution_2d(b, filled(parts[k]), reshape(b, filters, {w[0], w[1], w[3], w[4]}),
                                     k == 0 ? bias : kAbsent, plane, groups);
      y = y == kAbsent ? part : add(b, y, part);
    }
  }
  const std::int64_t width = window[2].output, channels = b.dim(y, 3);
  y = slice_axis(b, reshape(b, y, {dims[0], depth.output, steps, width * channels}), 2, 0, height.output);
  return reshape(b, y, {dims[0], depth.output, height.output, width, channels});
}

// Whether the window takes each place along the axis by itself.
bool is_apart(const WindowAxis& axis) {
  return axis.kernel == 1 && axis.stride == 1 && axis.before == 0 && axis.after == 0;
}

// x [n, c, d, h, w], channels first as its result.
Id convolution_over_3(GraphBuilder& b, Id x, Id weights, Id bias, const Window& window, std::int64_t groups) {
  const Id last = channels_last(b, x);
  const Dims dims = dims_of(b.shape(last)), w = dims_of(b.shape(weights));
  if (is_apart(window[2]) && dims[4] == 1 && dims[3] > 1) {
    return channels_first(b, convolution_of_columns(b, last, weights, bias, window));
  }
  if (is_apart(window[1]) && is_apart(window[2])) {  // over time alone: places are columns of one image
    const Id image = reshape(b, last, {dims[0], dims[1], dims[2] * dims[3], dims[4]});
    const WindowAxis columns{.input = dims[2] * dims[3], .output = dims[2] * dims[3]};
    const Id y =
        convolution_2d(b, image, reshape(b, weights, {w[0], w[1], w[2], 1}), bias, {window[0], columns}, groups);
    return channels_first(b, reshape(b, y, {dims[0], window[0].output, dims[2], dims[3], w[0]}));
  }
  return channels_first(b, convolution_3d(b, last, weights, bias, window, groups));
}

}  // namespace

Result<Id> convolution(NodeContext& ctx, Id x, Id weights, Id bias) {
  GraphBuilder& b = ctx.b;
  const int spatial = b.rank(x) - 2;
  if (spatial < 1 || spatial > 3) {
    return unsupported("the input has {} dimensions; convolutions over 1 to 3 spatial axes are converted", b.rank(x));
  }
  REEF_REQUIRE(b.rank(weights) == b.rank(x), "weights have {} dimensions, the input {}", b.rank(weights), b.rank(x));
  const std::int64_t groups = ctx.int_attribute("group", 1);
  REEF_REQUIRE(
      groups >= 1 && groups < (1 << 24) && b.dim(weights, 1) * groups == b.dim(x, 1) && b.dim(weights, 0) % groups == 0,
      "weights {} in {} groups do not fit an input of {} channels", b.shape(weights).to_string(), groups, b.dim(x, 1));
  Dims input = dims_of(b.shape(x)), kernel = dims_of(b.shape(weights));
  input.erase(input.begin(), input.begin() + 2);
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  const Dims stated = ctx.ints_attribute("kernel_shape");
  REEF_REQUIRE(stated.empty() || stated == kernel, "attribute kernel_shape is not the shape of the weights");
  REEF_ASSIGN_OR_RETURN(Window window, read_window(ctx, input, kernel));
  if (spatial == 3) return convolution_over_3(b, x, weights, bias, window, groups);
  if (spatial == 2) return channels_first(b, convolution_2d(b, channels_last(b, x), weights, bias, window, groups));
  window.insert(window.begin(), WindowAxis());
  const ir::Shape w = b.shape(weights);
  // Moved while there are three axes: what stands between two of these then sees one kind of transpose.
  const Id row = channels_last(b, x);
  const Id image = reshape(b, row, {b.dim(row, 0), 1, b.dim(row, 1), b.dim(row, 2)});
  const Id filters = reshape(b, weights, {w[0], w[1], 1, w[2]});
  const Id y = convolution_2d(b, image, filters, bias, window, groups);
  return channels_first(b, reshape(b, y, {b.dim(y, 0), b.dim(y, 2), b.dim(y, 3)}));
}

Status convert_conv(NodeContext& ctx, GraphBuilder&) {
  REEF_ASSIGN_OR_RETURN(const Id y, convolution(ctx, ctx.in(0), ctx.in(1), ctx.in(2)));
  return ctx.give(y);
}

}  // namespace reef::import

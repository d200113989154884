// SPDX-License-Identifier: Apache-2.0
// Conv: CONV_2D, or DEPTHWISE_CONV_2D where every group has one input channel.
//
// One spatial axis is two of which one has size 1. Three are a sum over the first axis of the kernel: slices of the
// input along that axis, joined with the batch, go through a two-dimensional convolution each.
#include "import/onnx/conv.h"

#include "import/onnx/window.h"

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
    return b.emit("DEPTHWISE_CONV_2D", {x, transpose(b, weights, {1, 2, 3, 0}), bias}, b.type(x),
                  std::move(attributes));
  }
  return b.emit("CONV_2D", {x, transpose(b, weights, {0, 2, 3, 1}), bias}, b.type(x), std::move(attributes));
}

// x [n, d, h, w, c], weights [o, c / groups, kd, kh, kw].
Id convolution_3d(GraphBuilder& b, Id x, Id weights, Id bias, const Window& window, std::int64_t groups) {
  const WindowAxis depth = window[0];
  const Window plane = {window[1], window[2]};
  Window only_depth = window;
  for (std::size_t i = 1; i < 3; ++i) only_depth[i] = WindowAxis{.input = window[i].input, .output = window[i].input};
  x = padded(b, x, only_depth, 0);
  const Dims dims = dims_of(b.shape(x));
  Id sum = kAbsent;
  for (std::int64_t k = 0; k < depth.kernel; ++k) {
    const std::int64_t begin = k * depth.dilation;
    const std::int64_t end = begin + (depth.output - 1) * depth.stride + 1;
    const Id planes =
        strided_slice(b, x, {0, begin, 0, 0, 0}, {dims[0], end, dims[2], dims[3], dims[4]}, {1, depth.stride, 1, 1, 1});
    const Id images = reshape(b, planes, {dims[0] * depth.output, dims[2], dims[3], dims[4]});
    const ir::Shape w = b.shape(weights);
    const Id slice_k = reshape(b, slice_axis(b, weights, 2, k, 1), {w[0], w[1], w[3], w[4]});
    const Id part = convolution_2d(b, images, slice_k, k == 0 ? bias : kAbsent, plane, groups);
    sum = sum == kAbsent ? part : add(b, sum, part);
  }
  return reshape(b, sum, {dims[0], depth.output, plane[0].output, plane[1].output, b.dim(sum, 3)});
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
  if (spatial == 3) return channels_first(b, convolution_3d(b, channels_last(b, x), weights, bias, window, groups));
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

Status convert_conv(NodeContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_inputs(2));
  REEF_ASSIGN_OR_RETURN(const Id y, convolution(ctx, ctx.in(0), ctx.in(1), ctx.in(2)));
  ctx.out(0, y);
  return ok_status();
}

}  // namespace reef::import

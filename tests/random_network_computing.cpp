// SPDX-License-Identifier: Apache-2.0
// Layers that compute, of described networks.
#include <algorithm>
#include <cmath>

#include "ops/table_functions.h"
#include "random_network_builder.h"

namespace reef::testing {

// Nothing: the kernel does not fit.
std::optional<NetworkBuilder::Axis> NetworkBuilder::axis(int size, int kernel, int stride, int dilation, bool same) {
  const int reach = (kernel - 1) * dilation + 1;
  if (!same && reach > size) return std::nullopt;
  return Axis{kernel, stride, same ? (size + stride - 1) / stride : (size - reach) / stride + 1};
}

std::string_view NetworkBuilder::activation(int n) {
  constexpr std::string_view kNames[] = {"NONE", "RELU", "RELU6"};
  return kNames[static_cast<std::size_t>(n % 3)];
}

std::int32_t NetworkBuilder::bias(int channels, float scale, int seed) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(channels));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] =
        seed == 0 ? 0 : static_cast<std::int32_t>((i * 7919 + static_cast<std::size_t>(seed) * 104729) % 20001) - 10000;
  }
  const std::int32_t tensor = model_.ints(values);
  model_.tensor(tensor).has_quantization = true;
  model_.tensor(tensor).quantization.scale = {scale};
  model_.tensor(tensor).quantization.zero_point = {0};
  return tensor;
}

void NetworkBuilder::per_channel(std::int32_t weights, int channels, int dimension) {
  ir::Quantization& q = model_.tensor(weights).quantization;
  q.dimension = dimension;
  q.zero_point.assign(static_cast<std::size_t>(channels), 0);
  const float scale = q.scale[0];
  q.scale.clear();
  for (int c = 0; c < channels; ++c) q.scale.push_back(scale * (1.0f + 0.03f * static_cast<float>(c % 7)));
}

// numbers: kernel, stride, output channels less one, padding and dilation, activation and quantization
std::int32_t NetworkBuilder::convolution(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  constexpr int kKernels[] = {1, 3, 2, 5, 7};
  const ir::Shape in = shape(x);
  const bool depthwise = layer.op == "DEPTHWISE_CONV_2D", same = n[3] % 4 != 3;
  const int stride_y = 1 + n[1] % 3, stride_x = 1 + n[1] / 3 % 2;
  const int dilation = n[3] / 4 % 5 == 4 && stride_y == 1 && stride_x == 1 ? 2 : 1;
  const auto y = axis(in[1], kKernels[n[0] % 5], stride_y, dilation, same);
  const auto across = axis(in[2], kKernels[n[0] / 5 % 5], stride_x, dilation, same);
  const int outputs = depthwise ? in[3] : 1 + n[2] % 130;
  if (!y || !across || y->outputs * across->outputs * outputs > kMostElements) return kNoValue;
  const float weight_scale = 0.01f, in_scale = of(x).scale;
  const std::int32_t weights = model_.weights(depthwise ? ir::Shape{1, y->kernel, across->kernel, outputs}
                                                        : ir::Shape{outputs, y->kernel, across->kernel, in[3]},
                                              weight_scale);
  model_.tensor(weights).quantization.dimension = depthwise ? 3 : 0;
  if (network_.is_signed && n[4] / 3 % 2 == 1) per_channel(weights, outputs, depthwise ? 3 : 0);
  const double products = double(y->kernel) * across->kernel * (depthwise ? 1 : in[3]);
  const auto scale = static_cast<float>(in_scale * weight_scale * 73 * 74 * std::sqrt(products) / 60);
  const std::int32_t out = model_.computed({1, y->outputs, across->outputs, outputs}, quantized(scale, n[4] * 37));
  ir::Attributes a;
  a.set("padding", word(same ? "SAME" : "VALID"));
  a.set("stride_w", number(stride_x));
  a.set("stride_h", number(stride_y));
  if (depthwise) a.set("depth_multiplier", number(1));
  a.set("fused_activation_function", word(activation(n[4])));
  a.set("dilation_w_factor", number(dilation));
  a.set("dilation_h_factor", number(dilation));
  return op(layer.op, {x, weights, bias(outputs, in_scale * weight_scale, n[4])}, {out},
            depthwise ? "DepthwiseConv2DOptions" : "Conv2DOptions", a, 3);
}

// numbers: kernel, stride, output channels less one, padding
std::int32_t NetworkBuilder::transpose_conv(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const ir::Shape in = shape(x);
  const int kernel = 2 + n[0] % 3, stride = 1 + n[1] % 2, outputs = 1 + n[2] % 70;
  const bool same = n[3] % 2 == 0;
  const int height = same ? in[1] * stride : (in[1] - 1) * stride + kernel;
  const int width = same ? in[2] * stride : (in[2] - 1) * stride + kernel;
  if (height * width * outputs > kMostElements) return kNoValue;
  const std::int32_t weights = model_.weights({outputs, kernel, kernel, in[3]}, 0.01f);
  const auto scale = static_cast<float>(of(x).scale * 0.01f * 90 * std::sqrt(double(kernel) * kernel * in[3]));
  ir::Attributes a;
  a.set("padding", word(same ? "SAME" : "VALID"));
  a.set("stride_w", number(stride));
  a.set("stride_h", number(stride));
  return op(layer.op, {model_.ints({1, height, width, outputs}), weights, x},
            {model_.computed({1, height, width, outputs}, quantized(scale, n[4] * 37))}, "TransposeConvOptions", a);
}

// numbers: outputs less one, activation, quantization
std::int32_t NetworkBuilder::fully_connected(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  const auto inputs = static_cast<int>(shape(x).elements());
  const int outputs = 1 + n[0] % 200;
  if (inputs > 3000) return kNoValue;
  const std::int32_t weights = model_.weights({outputs, inputs}, 0.01f);
  const auto scale = static_cast<float>(of(x).scale * 0.01f * 90 * std::sqrt(double(inputs)));
  ir::Attributes a;
  a.set("fused_activation_function", word(activation(n[1])));
  return op(layer.op, {x, weights, bias(outputs, of(x).scale * 0.01f, n[2])},
            {model_.computed({1, outputs}, quantized(scale, n[2] * 37))}, "FullyConnectedOptions", a, 4);
}

// A product for each row of the image. numbers: what is multiplied, columns of a constant, scale, zero point
std::int32_t NetworkBuilder::matrix_product(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x) || !network_.is_signed) return kNoValue;  // TFLite has none of uint8
  const ir::Shape in = shape(x);
  std::int32_t y = other(layer.b, [&](std::int32_t value) { return shape(value) == in; });
  bool adj_x = false, adj_y = true;
  ir::Shape out{1, in[1], in[2], in[2]};
  const int form = n[0] % 5;
  if (form == 1) {  // of columns by columns
    adj_x = true;
    adj_y = false;
    out = {1, in[1], in[3], in[3]};
  } else if (form == 2) {  // by constants
    adj_y = n[0] / 5 % 2 == 1;
    const int columns = 1 + n[1] % 70;
    y = model_.weights(adj_y ? ir::Shape{1, in[1], columns, in[3]} : ir::Shape{1, in[1], in[3], columns}, 0.01f);
    out = {1, in[1], in[2], columns};
  } else if (form == 3) {  // all by one matrix, or one by all
    const std::int32_t one = other(layer.b, [&](std::int32_t value) {
      return is_image(value) && shape(value)[1] == 1 && shape(value)[3] == in[3];
    });
    if (one == kNoValue) return kNoValue;
    y = one;
    out = {1, in[1], in[2], shape(one)[2]};
    if (n[0] / 5 % 2 == 1) {
      std::swap(x, y);
      out = {1, in[1], shape(one)[2], in[2]};
    }
  }
  if (y == kNoValue || out.elements() > kMostElements) return kNoValue;
  const double depth = adj_x ? in[2] : in[3];
  const auto scale = static_cast<float>(of(x).scale * of(y).scale * 50 * std::sqrt(depth) * (1 + n[2] % 3));
  ir::Attributes a;
  a.set("adj_x", adj_x);
  a.set("adj_y", adj_y);
  return op(layer.op, {x, y}, {model_.computed(out, quantized(scale, n[3] * 37))}, "BatchMatMulOptions", a, 4);
}

// A constant of the shape of x, or of some of its dimensions.
std::int32_t NetworkBuilder::constant_beside(std::int32_t x, int which, bool like_x) {
  const ir::Shape in = shape(x);
  ir::Shape of_constant{in.last()};
  if (which % 4 == 1) of_constant = {};
  if (which % 4 == 2) of_constant = in;
  if (which % 4 == 3 && in.rank() == 4) of_constant = {1, in[1], 1, in[3]};
  const std::int32_t constant = model_.weights(of_constant, 0.02f);
  if (like_x) model_.tensor(constant).quantization = model_.tensor(x).quantization;
  return constant;
}

// Dimensions of y are those of x, or 1.
bool NetworkBuilder::is_repeated(std::int32_t y, std::int32_t x) const {
  if (!is_image(x) || !is_image(y)) return shape(x) == shape(y);
  for (int d = 1; d < 4; ++d) {
    if (shape(y)[d] != 1 && shape(y)[d] != shape(x)[d]) return false;
  }
  return true;
}

// numbers: scale, zero point, activation, what the other operand is, of which shape it is
std::int32_t NetworkBuilder::two_operands(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  const bool extreme = layer.op == "MAXIMUM" || layer.op == "MINIMUM", repeats = n[3] % 5 == 4;
  std::int32_t y = other(layer.b, [&](std::int32_t value) {
    return (repeats ? is_repeated(value, x) : shape(value) == shape(x)) && (!extreme || same_quantization(value, x));
  });
  if (n[3] % 5 == 3) y = constant_beside(x, n[4], extreme);
  const bool product = layer.op == "MUL" || layer.op == "SQUARED_DIFFERENCE";
  const float one = product ? of(x).scale * of(y).scale * 100 : std::max(of(x).scale, of(y).scale);
  const float scale = one * (1.0f + 0.37f * static_cast<float>(n[0] % 4));
  const std::int32_t out = model_.computed(shape(x), extreme ? of(x) : quantized(scale, n[1]));
  ir::Attributes a;
  std::string_view options = extreme ? "MaximumMinimumOptions" : "SquaredDifferenceOptions";
  if (!extreme && layer.op != "SQUARED_DIFFERENCE") {
    a.set("fused_activation_function", word(activation(n[2])));
    options = layer.op == "ADD" ? "AddOptions" : layer.op == "SUB" ? "SubOptions" : "MulOptions";
  }
  const bool swap = n[4] / 4 % 2 == 1;
  return op(layer.op, {swap ? y : x, swap ? x : y}, {out}, options, a, 2);
}

// numbers: size, stride, padding
std::int32_t NetworkBuilder::pool(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const ir::Shape in = shape(x);
  const bool same = n[2] % 2 == 0;
  const int stride_y = 1 + n[1] % 3, stride_x = 1 + n[1] / 3 % 2;
  const auto y = axis(in[1], 1 + n[0] % 4, stride_y, 1, same),
             across = axis(in[2], 1 + n[0] / 4 % 4, stride_x, 1, same);
  if (!y || !across) return kNoValue;
  ir::Attributes a;
  a.set("padding", word(same ? "SAME" : "VALID"));
  a.set("stride_w", number(stride_x));
  a.set("stride_h", number(stride_y));
  a.set("filter_width", number(across->kernel));
  a.set("filter_height", number(y->kernel));
  a.set("fused_activation_function", word(activation(n[3])));
  return op(layer.op, {x}, {model_.computed({1, y->outputs, across->outputs, in[3]}, of(x))}, "Pool2DOptions", a, 2);
}

// numbers: keep dimensions, scale, zero point, which axes
std::int32_t NetworkBuilder::reduction(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  static const std::vector<std::vector<std::int32_t>> kAxes = {{1, 2}, {3}, {2}, {1}, {2, 3}, {1, 3}, {1, 2, 3}};
  const std::vector<std::int32_t>& axes = kAxes[static_cast<std::size_t>(n[3]) % kAxes.size()];
  const bool keep = n[0] % 2 == 0;
  ir::Shape out;
  double count = 1;
  for (int d = 0; d < 4; ++d) {
    const bool reduced = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (reduced) count *= shape(x)[d];
    if (!reduced || keep) out.push_back(reduced ? 1 : shape(x)[d]);
  }
  Quantized to = of(x);
  if (layer.op == "SUM") to = quantized(to.scale * static_cast<float>(std::sqrt(count)), n[2]);
  if (layer.op == "MEAN" && n[1] % 3 == 1) to = quantized(to.scale * 0.6f, n[2]);
  ir::Attributes a;
  a.set("keep_dims", keep);
  return op(layer.op, {x, model_.ints(axes)}, {model_.computed(out, to)}, "ReducerOptions", a, 2);
}

// numbers: which form
std::int32_t NetworkBuilder::unary(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  Quantized to = of(x);
  ir::Attributes a;
  std::string_view options;
  if (layer.op == "LOGISTIC" || layer.op == "SOFTMAX") to = quantized(1.0f / 256, 0);
  if (layer.op == "TANH" || layer.op == "L2_NORMALIZATION") to = quantized(1.0f / 128, 128);
  if (layer.op == "SOFTMAX") {
    a.set("beta", 1.0);
    options = "SoftmaxOptions";
  }
  if (layer.op == "GELU") {
    a.set("approximate", n[0] % 2 == 1);
    options = "GeluOptions";
  }
  if (layer.op == "HARD_SWISH" || layer.op == "ELU") a.set(ops::kByTable, true);
  if (layer.op == "L2_NORMALIZATION") {
    a.set("fused_activation_function", word("NONE"));
    options = "L2NormOptions";
  }
  return op(layer.op, {x}, {model_.computed(shape(x), to)}, options, a, 2);
}

// numbers: scale, zero point
std::int32_t NetworkBuilder::requantize(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  const float scale = of(x).scale * (0.7f + 0.4f * static_cast<float>(n[0] % 3));
  return op(layer.op, {x}, {model_.computed(shape(x), quantized(scale, n[1]))}, "QuantizeOptions", {}, 2);
}

std::int32_t NetworkBuilder::prelu(const RandomLayer& layer, std::int32_t x, const Numbers&) {
  if (!is_image(x)) return kNoValue;
  const std::int32_t slopes = model_.weights({1, 1, shape(x)[3]}, 0.004f);
  return op(layer.op, {x, slopes}, {model_.computed(shape(x), of(x))}, "", {});
}

}  // namespace reef::testing

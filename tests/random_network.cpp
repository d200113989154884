// SPDX-License-Identifier: Apache-2.0
#include "random_network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "quantized_model.h"
#include "random_choice.h"

namespace reef::testing {
namespace {

constexpr int kMostElements = 120000;  // of a tensor
constexpr int kMostBilinearWeight = 128;
constexpr int kNoValue = -1;

using Numbers = std::array<int, 5>;

ir::AttributeValue word(std::string_view name) { return ir::EnumName{std::string(name)}; }
ir::AttributeValue number(std::int64_t value) { return value; }

class NetworkBuilder {
 public:
  explicit NetworkBuilder(const RandomNetwork& network) : network_(network), model_(activations(network)) {
    values_.push_back(model_.input({1, network.height, network.width, network.channels}));
  }

  std::optional<ir::Model> build() {
    std::vector<bool> is_read(network_.layers.size() + 1);
    for (const RandomLayer& layer : network_.layers) values_.push_back(add(layer));
    std::vector<std::int32_t> outputs;
    for (const std::int32_t tensor : made_) {
      if (std::find(read_.begin(), read_.end(), tensor) == read_.end()) outputs.push_back(tensor);
    }
    if (outputs.empty()) return std::nullopt;
    return model_.finish(outputs);
  }

 private:
  using Make = std::int32_t (NetworkBuilder::*)(const RandomLayer&, std::int32_t, const Numbers&);

  static Quantized activations(const RandomNetwork& network) {
    const ir::DataType type = network.is_signed ? ir::DataType::kInt8 : ir::DataType::kUInt8;
    return {type, 0.05f, network.zero_point - (network.is_signed ? 128 : 0)};
  }
  ir::DataType type() const { return network_.is_signed ? ir::DataType::kInt8 : ir::DataType::kUInt8; }
  std::int64_t zero(int code) const { return code % 256 - (network_.is_signed ? 128 : 0); }
  Quantized quantized(float scale, int code) const { return {type(), scale, zero(code)}; }
  Quantized of(std::int32_t x) {
    const ir::Quantization& q = model_.tensor(x).quantization;
    return {type(), q.scale[0], q.zero_point[0]};
  }
  bool same_quantization(std::int32_t a, std::int32_t b) {
    return of(a).scale == of(b).scale && of(a).zero_point == of(b).zero_point;
  }
  ir::Shape shape(std::int32_t x) const { return model_.shape(x); }
  bool is_image(std::int32_t x) const { return shape(x).rank() == 4; }

  std::int32_t pick(int index) const { return values_[static_cast<std::size_t>(index) % values_.size()]; }

  // The layer's result; its operand where the layer makes no sense.
  std::int32_t add(const RandomLayer& layer) {
    static const std::map<std::string_view, Make> kMakers = {
        {"CONV_2D", &NetworkBuilder::convolution},
        {"DEPTHWISE_CONV_2D", &NetworkBuilder::convolution},
        {"TRANSPOSE_CONV", &NetworkBuilder::transpose_conv},
        {"FULLY_CONNECTED", &NetworkBuilder::fully_connected},
        {"ADD", &NetworkBuilder::two_operands},
        {"SUB", &NetworkBuilder::two_operands},
        {"MUL", &NetworkBuilder::two_operands},
        {"MAXIMUM", &NetworkBuilder::two_operands},
        {"MINIMUM", &NetworkBuilder::two_operands},
        {"SQUARED_DIFFERENCE", &NetworkBuilder::two_operands},
        {"AVERAGE_POOL_2D", &NetworkBuilder::pool},
        {"MAX_POOL_2D", &NetworkBuilder::pool},
        {"MEAN", &NetworkBuilder::reduction},
        {"SUM", &NetworkBuilder::reduction},
        {"REDUCE_MAX", &NetworkBuilder::reduction},
        {"REDUCE_MIN", &NetworkBuilder::reduction},
        {"RELU", &NetworkBuilder::unary},
        {"RELU6", &NetworkBuilder::unary},
        {"RELU_N1_TO_1", &NetworkBuilder::unary},
        {"LOGISTIC", &NetworkBuilder::unary},
        {"TANH", &NetworkBuilder::unary},
        {"RSQRT", &NetworkBuilder::unary},
        {"SOFTMAX", &NetworkBuilder::unary},
        {"L2_NORMALIZATION", &NetworkBuilder::unary},
        {"QUANTIZE", &NetworkBuilder::requantize},
        {"PRELU", &NetworkBuilder::prelu},
        {"RESHAPE", &NetworkBuilder::reshape},
        {"TRANSPOSE", &NetworkBuilder::transpose},
        {"PAD", &NetworkBuilder::pad},
        {"CONCATENATION", &NetworkBuilder::concatenation},
        {"SLICE", &NetworkBuilder::slice},
        {"STRIDED_SLICE", &NetworkBuilder::slice},
        {"SPLIT", &NetworkBuilder::split},
        {"TILE", &NetworkBuilder::tile},
        {"SPACE_TO_DEPTH", &NetworkBuilder::blocks},
        {"DEPTH_TO_SPACE", &NetworkBuilder::blocks},
        {"RESIZE_NEAREST_NEIGHBOR", &NetworkBuilder::resize},
        {"RESIZE_BILINEAR", &NetworkBuilder::resize},
    };
    const std::int32_t x = pick(layer.a);
    const auto maker = kMakers.find(layer.op);
    if (maker == kMakers.end()) return x;
    const std::int32_t made = (this->*maker->second)(layer, x, layer.numbers);
    return made == kNoValue ? x : made;
  }

  // Adds the operator and notes who reads and what is made.
  std::int32_t op(std::string_view type, std::vector<std::int32_t> inputs, std::vector<std::int32_t> outputs,
                  std::string_view options, ir::Attributes attributes, int version = 1) {
    read_.insert(read_.end(), inputs.begin(), inputs.end());
    made_.insert(made_.end(), outputs.begin(), outputs.end());
    return model_.op(type, std::move(inputs), std::move(outputs), options, std::move(attributes), version);
  }

  struct Axis {
    int kernel, stride, outputs;
  };
  // Nothing: the kernel does not fit.
  static std::optional<Axis> axis(int size, int kernel, int stride, int dilation, bool same) {
    const int reach = (kernel - 1) * dilation + 1;
    if (!same && reach > size) return std::nullopt;
    return Axis{kernel, stride, same ? (size + stride - 1) / stride : (size - reach) / stride + 1};
  }
  static std::string_view activation(int n) {
    constexpr std::string_view kNames[] = {"NONE", "RELU", "RELU6"};
    return kNames[static_cast<std::size_t>(n % 3)];
  }

  std::int32_t bias(int channels, float scale, int seed) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(channels));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = seed == 0
                      ? 0
                      : static_cast<std::int32_t>((i * 7919 + static_cast<std::size_t>(seed) * 104729) % 20001) - 10000;
    }
    const std::int32_t tensor = model_.ints(values);
    model_.tensor(tensor).has_quantization = true;
    model_.tensor(tensor).quantization.scale = {scale};
    model_.tensor(tensor).quantization.zero_point = {0};
    return tensor;
  }
  void per_channel(std::int32_t weights, int channels, int dimension) {
    ir::Quantization& q = model_.tensor(weights).quantization;
    q.dimension = dimension;
    q.zero_point.assign(static_cast<std::size_t>(channels), 0);
    const float scale = q.scale[0];
    q.scale.clear();
    for (int c = 0; c < channels; ++c) q.scale.push_back(scale * (1.0f + 0.03f * static_cast<float>(c % 7)));
  }

  // numbers: kernel, stride, output channels less one, padding and dilation, activation and quantization
  std::int32_t convolution(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
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
  std::int32_t transpose_conv(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
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
  std::int32_t fully_connected(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
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

  // The value `from` or the nearest one before it that suits.
  std::int32_t other(int from, const std::function<bool(std::int32_t)>& suits) const {
    const std::size_t count = values_.size();
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t value = values_[(static_cast<std::size_t>(from) + count - i) % count];
      if (suits(value)) return value;
    }
    return kNoValue;
  }

  // A constant of the shape of x, or of some of its dimensions.
  std::int32_t constant_beside(std::int32_t x, int which, bool like_x) {
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
  bool is_repeated(std::int32_t y, std::int32_t x) const {
    if (!is_image(x) || !is_image(y)) return shape(x) == shape(y);
    for (int d = 1; d < 4; ++d) {
      if (shape(y)[d] != 1 && shape(y)[d] != shape(x)[d]) return false;
    }
    return true;
  }

  // numbers: scale, zero point, activation, what the other operand is, of which shape it is
  std::int32_t two_operands(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
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
  std::int32_t pool(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
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
  std::int32_t reduction(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
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

  std::int32_t unary(const RandomLayer& layer, std::int32_t x, const Numbers&) {
    Quantized to = of(x);
    ir::Attributes a;
    std::string_view options;
    if (layer.op == "LOGISTIC" || layer.op == "SOFTMAX") to = quantized(1.0f / 256, 0);
    if (layer.op == "TANH" || layer.op == "L2_NORMALIZATION") to = quantized(1.0f / 128, 128);
    if (layer.op == "SOFTMAX") {
      a.set("beta", 1.0);
      options = "SoftmaxOptions";
    }
    if (layer.op == "L2_NORMALIZATION") {
      a.set("fused_activation_function", word("NONE"));
      options = "L2NormOptions";
    }
    return op(layer.op, {x}, {model_.computed(shape(x), to)}, options, a, 2);
  }

  // numbers: scale, zero point
  std::int32_t requantize(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    const float scale = of(x).scale * (0.7f + 0.4f * static_cast<float>(n[0] % 3));
    return op(layer.op, {x}, {model_.computed(shape(x), quantized(scale, n[1]))}, "QuantizeOptions", {}, 2);
  }

  std::int32_t prelu(const RandomLayer& layer, std::int32_t x, const Numbers&) {
    if (!is_image(x)) return kNoValue;
    const std::int32_t slopes = model_.weights({1, 1, shape(x)[3]}, 0.004f);
    return op(layer.op, {x, slopes}, {model_.computed(shape(x), of(x))}, "", {});
  }

  // numbers: to which shape
  std::int32_t reshape(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    const ir::Shape in = shape(x);
    const auto all = static_cast<std::int32_t>(in.elements());
    ir::Shape to{1, all};
    if (!is_image(x)) to = {1, 1, 1, all};
    if (is_image(x) && n[0] % 3 == 1) to = {1, in[2], in[1], in[3]};
    if (is_image(x) && n[0] % 3 == 2) to = {1, 1, in[1] * in[2], in[3]};
    ir::Attributes a;
    a.set("new_shape", std::vector<std::int64_t>(to.begin(), to.end()));
    return op(layer.op, {x, model_.ints(to.dims())}, {model_.computed(to, of(x))}, "ReshapeOptions", a);
  }

  // numbers: which order
  std::int32_t transpose(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    constexpr std::array<std::array<int, 4>, 5> kOrders = {
        {{0, 2, 1, 3}, {0, 1, 3, 2}, {0, 3, 2, 1}, {0, 2, 3, 1}, {0, 3, 1, 2}}};
    const auto& order = kOrders[static_cast<std::size_t>(n[0]) % kOrders.size()];
    ir::Shape to;
    for (const int axis : order) to.push_back(shape(x)[axis]);
    return op(layer.op, {x, model_.ints({order.begin(), order.end()})}, {model_.computed(to, of(x))},
              "TransposeOptions", {}, 2);
  }

  // numbers: before and behind rows and columns
  std::int32_t pad(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    const ir::Shape in = shape(x);
    const std::vector<std::int32_t> amounts = {0,        0,        n[0] % 3, n[1] % 3,
                                               n[2] % 3, n[3] % 3, 0,        n[4] % 12 == 11 ? 2 : 0};
    const ir::Shape to{1, in[1] + amounts[2] + amounts[3], in[2] + amounts[4] + amounts[5], in[3] + amounts[7]};
    return op(layer.op, {x, model_.ints(amounts, {4, 2})}, {model_.computed(to, of(x))}, "PadOptions", {});
  }

  // numbers: which axis
  std::int32_t concatenation(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    const int axis = 3 - n[0] % 3;
    const std::int32_t y = other(layer.b, [&](std::int32_t value) {
      if (!is_image(value) || value == x || !same_quantization(x, value)) return false;
      for (int d = 1; d < 4; ++d) {
        if (d != axis && shape(value)[d] != shape(x)[d]) return false;
      }
      return true;
    });
    if (y == kNoValue) return kNoValue;
    ir::Shape to = shape(x);
    to[axis] += shape(y)[axis];
    if (to.elements() > kMostElements) return kNoValue;
    ir::Attributes a;
    a.set("axis", number(axis));
    a.set("fused_activation_function", word("NONE"));
    return op(layer.op, {x, y}, {model_.computed(to, of(x))}, "ConcatenationOptions", a, 2);
  }

  // numbers: how much to leave away at the beginning of rows, columns, channels; step
  std::int32_t slice(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    const ir::Shape in = shape(x);
    const bool strided = layer.op == "STRIDED_SLICE";
    std::vector<std::int32_t> begin = {0, n[0] % 3, n[1] % 3, n[2] % 5}, end = {1, in[1], in[2], in[3]};
    std::vector<std::int32_t> steps = {1, strided ? 1 + n[3] % 2 : 1, strided ? 1 + n[3] / 2 % 2 : 1, 1};
    ir::Shape to{1};
    for (int d = 1; d < 4; ++d) {
      const auto k = static_cast<std::size_t>(d);
      if (begin[k] >= end[k]) begin[k] = 0;
      if (n[4] % 2 == 1 && end[k] - begin[k] > 1) --end[k];
      to.push_back((end[k] - begin[k] + steps[k] - 1) / steps[k]);
    }
    const std::int32_t out = model_.computed(to, of(x));
    if (!strided) {
      return op(layer.op, {x, model_.ints(begin), model_.ints(to.dims())}, {out}, "SliceOptions", {}, 2);
    }
    ir::Attributes a;
    for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
      a.set(mask, number(0));
    }
    return op(layer.op, {x, model_.ints(begin), model_.ints(end), model_.ints(steps)}, {out}, "StridedSliceOptions", a,
              2);
  }

  std::int32_t split(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    const int axis = 3 - n[0] % 3;
    ir::Shape to = shape(x);
    if (to[axis] % 2 != 0) return kNoValue;
    to[axis] /= 2;
    ir::Attributes a;
    a.set("num_splits", number(2));
    const std::int32_t first = model_.computed(to, of(x)), second = model_.computed(to, of(x));
    return op(layer.op, {model_.ints({axis}, ir::Shape{}), x}, {first, second}, "SplitOptions", a, 2);
  }

  std::int32_t tile(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    const std::vector<std::int32_t> times = {1, 1 + n[0] % 2, 1 + n[1] % 2, 1 + n[2] % 2};
    ir::Shape to{1};
    for (int d = 1; d < 4; ++d) to.push_back(shape(x)[d] * times[static_cast<std::size_t>(d)]);
    if (to.elements() > kMostElements) return kNoValue;
    return op(layer.op, {x, model_.ints(times)}, {model_.computed(to, of(x))}, "TileOptions", {}, 2);
  }

  std::int32_t blocks(const RandomLayer& layer, std::int32_t x, const Numbers&) {
    if (!is_image(x)) return kNoValue;
    const ir::Shape in = shape(x);
    const bool to_depth = layer.op == "SPACE_TO_DEPTH";
    if (to_depth ? in[1] % 2 + in[2] % 2 != 0 : in[3] % 4 != 0) return kNoValue;
    const ir::Shape to =
        to_depth ? ir::Shape{1, in[1] / 2, in[2] / 2, in[3] * 4} : ir::Shape{1, in[1] * 2, in[2] * 2, in[3] / 4};
    ir::Attributes a;
    a.set("block_size", number(2));
    return op(layer.op, {x}, {model_.computed(to, of(x))}, to_depth ? "SpaceToDepthOptions" : "DepthToSpaceOptions", a,
              to_depth ? 2 : 1);
  }

  // How many pixels an axis gets: twice as many, a multiple, a multiple between the first and the last, any number.
  static int resized(int size, int n) {
    const int more = n / 4, times = 1 + more % 5;
    return n % 4 == 0 ? 2 * size : n % 4 == 1 ? times * size : n % 4 == 2 ? times * (size - 1) + 1 : 1 + more;
  }
  // The smallest part of a pixel that positions along an axis are multiples of.
  static int position_denominator(int from, int to, bool align_corners, bool half_pixels) {
    const int trim = align_corners && to > 1 ? 1 : 0, in = from - trim, out = to - trim;
    if (in < 1 || from == 1) return 1;
    if (!half_pixels) return out / std::gcd(in, out);
    return 2 * out / std::gcd(std::gcd(2 * in, in - out), 2 * out);
  }

  // numbers: corners or centers, rows, columns, whether these count
  std::int32_t resize(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
    if (!is_image(x)) return kNoValue;
    const ir::Shape in = shape(x);
    const bool bilinear = layer.op == "RESIZE_BILINEAR", half = n[0] % 3 == 1;
    bool align = n[0] % 3 == 2;
    ir::Shape to{1, 2 * in[1], 2 * in[2], in[3]};
    if (n[3] % 2 == 1) {
      to = {1, resized(in[1], n[1]), resized(in[2], n[2]), in[3]};
    } else {
      align = false;
    }
    if (to.elements() > kMostElements) return kNoValue;
    // Bilinear weights have 8 bits.
    if (bilinear && position_denominator(in[1], to[1], align, half) * position_denominator(in[2], to[2], align, half) >
                        kMostBilinearWeight) {
      return kNoValue;
    }
    ir::Attributes a;
    a.set("align_corners", align);
    a.set("half_pixel_centers", half);
    return op(layer.op, {x, model_.ints({to[1], to[2]})}, {model_.computed(to, of(x))},
              bilinear ? "ResizeBilinearOptions" : "ResizeNearestNeighborOptions", a, 3);
  }

  const RandomNetwork& network_;
  QuantizedModel model_;
  std::vector<std::int32_t> values_;       // by layer, from the input on
  std::vector<std::int32_t> read_, made_;  // tensors
};

// ---- Shrinking ----

// Without layer `index`: who read its result reads its operand.
RandomNetwork without_layer(RandomNetwork network, std::size_t index) {
  const int value = static_cast<int>(index) + 1, instead = network.layers[index].a % value;
  network.layers.erase(network.layers.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::size_t i = index; i < network.layers.size(); ++i) {
    const int there_were = static_cast<int>(i) + 2;  // values before it
    for (int* read : {&network.layers[i].a, &network.layers[i].b}) {
      *read %= there_were;
      if (*read == value) *read = instead;
      if (*read > value) --*read;
    }
  }
  return network;
}

std::vector<RandomNetwork> smaller_ones(const RandomNetwork& network) {
  std::vector<RandomNetwork> result;
  for (std::size_t i = network.layers.size(); i-- > 0;) result.push_back(without_layer(network, i));
  const auto with = [&](const auto& change) {
    RandomNetwork other = network;
    change(other);
    if (!(other == network)) result.push_back(std::move(other));
  };
  for (int RandomNetwork::*size : {&RandomNetwork::height, &RandomNetwork::width, &RandomNetwork::channels}) {
    with([&](RandomNetwork& n) { n.*size = 1; });
    with([&](RandomNetwork& n) { n.*size = std::max(1, n.*size / 2); });
    with([&](RandomNetwork& n) { n.*size = std::max(1, n.*size - 1); });
  }
  with([&](RandomNetwork& n) { n.zero_point = 0; });
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    for (std::size_t k = 0; k < network.layers[i].numbers.size(); ++k) {
      with([&](RandomNetwork& n) { n.layers[i].numbers[k] = 0; });
      with([&](RandomNetwork& n) { n.layers[i].numbers[k] /= 2; });
      with([&](RandomNetwork& n) { n.layers[i].numbers[k] -= n.layers[i].numbers[k] > 0; });
    }
  }
  return result;
}

}  // namespace

const std::vector<std::string>& random_network_ops() {
  static const auto* ops = new std::vector<std::string>{"CONV_2D",
                                                        "DEPTHWISE_CONV_2D",
                                                        "FULLY_CONNECTED",
                                                        "ADD",
                                                        "AVERAGE_POOL_2D",
                                                        "MAX_POOL_2D",
                                                        "MEAN",
                                                        "RELU",
                                                        "RELU6",
                                                        "RELU_N1_TO_1",
                                                        "RESHAPE",
                                                        "SOFTMAX",
                                                        "QUANTIZE",
                                                        "PAD",
                                                        "CONCATENATION",
                                                        "LOGISTIC",
                                                        "TANH",
                                                        "MUL",
                                                        "SUB",
                                                        "MAXIMUM",
                                                        "MINIMUM",
                                                        "RESIZE_NEAREST_NEIGHBOR",
                                                        "RESIZE_BILINEAR",
                                                        "STRIDED_SLICE",
                                                        "SLICE",
                                                        "SPLIT",
                                                        "PRELU",
                                                        "TRANSPOSE_CONV",
                                                        "TRANSPOSE",
                                                        "SUM",
                                                        "REDUCE_MAX",
                                                        "REDUCE_MIN",
                                                        "L2_NORMALIZATION",
                                                        "RSQRT",
                                                        "SQUARED_DIFFERENCE",
                                                        "SPACE_TO_DEPTH",
                                                        "DEPTH_TO_SPACE",
                                                        "TILE"};
  return *ops;
}

RandomNetwork RandomNetwork::generate(unsigned seed, const std::function<bool(std::string_view)>& is_usable) {
  RandomChoice choice(seed);
  std::vector<std::string> usable;
  for (const std::string& op : random_network_ops()) {
    if (is_usable(op)) usable.push_back(op);
  }
  RandomNetwork network;
  network.is_signed = choice.likely(70);
  network.height = choice.likely(30) ? choice.between(1, 5) : choice.between(4, 30);
  network.width = choice.likely(30) ? choice.between(1, 5) : choice.between(4, 36);
  network.channels = choice.among({1, 2, 3, 3, 4, 5, 8, 12, 16, 20, 64, 67});
  network.zero_point = choice.among({0, 3, 100, 128, 255});
  const int layers = choice.between(1, 7);
  for (int i = 0; i < layers; ++i) {
    RandomLayer layer;
    // Every second one computes with weights: everything else is small without them.
    const bool convolves = choice.likely(40);
    layer.op = convolves ? (choice.likely(65) ? "CONV_2D" : "DEPTHWISE_CONV_2D")
                         : usable[static_cast<std::size_t>(choice.between(0, static_cast<int>(usable.size()) - 1))];
    layer.a = choice.likely(75) ? i : choice.between(0, i);  // a chain, with branches
    layer.b = choice.between(0, i);
    for (int& n : layer.numbers) n = choice.between(0, 199);
    network.layers.push_back(layer);
  }
  return network;
}

std::string RandomNetwork::to_string() const {
  std::string text =
      fmt::format("{} {}x{}x{} zero {}", is_signed ? "int8" : "uint8", height, width, channels, zero_point);
  for (const RandomLayer& layer : layers) {
    text += fmt::format("; {} {} {} {}", layer.op, layer.a, layer.b, fmt::join(layer.numbers, " "));
  }
  return text;
}

std::optional<RandomNetwork> RandomNetwork::parse(const std::string& text) {
  RandomNetwork network;
  std::istringstream parts(text);
  std::string part;
  for (bool first = true; std::getline(parts, part, ';'); first = false) {
    std::istringstream words(part);
    std::string name, zero;
    char by = 0;
    words >> name;
    if (first) {
      network.is_signed = name == "int8";
      words >> network.height >> by >> network.width >> by >> network.channels >> zero >> network.zero_point;
    } else {
      RandomLayer layer;
      layer.op = name;
      words >> layer.a >> layer.b;
      for (int& n : layer.numbers) words >> n;
      network.layers.push_back(layer);
    }
    if (!words) return std::nullopt;
  }
  return network;
}

std::optional<ir::Model> RandomNetwork::build() const { return NetworkBuilder(*this).build(); }

RandomNetwork RandomNetwork::shrunk(const std::function<bool(const RandomNetwork&)>& fails) const {
  RandomNetwork best = *this;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (RandomNetwork& candidate : smaller_ones(best)) {
      if (!fails(candidate)) continue;
      best = std::move(candidate);
      smaller = true;
      break;
    }
  }
  return best;
}

}  // namespace reef::testing

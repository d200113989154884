// SPDX-License-Identifier: Apache-2.0
#include "rule_cases.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "ops/table_functions.h"
#include "quantized_model.h"

namespace reef::testing {
namespace {

using ir::Attributes;
using ir::AttributeValue;
using ir::DataType;

Attributes attributes(std::initializer_list<std::pair<std::string_view, AttributeValue>> rows) {
  Attributes result;
  for (const auto& [name, value] : rows) result.set(name, value);
  return result;
}

std::int64_t number(std::int64_t value) { return value; }

ir::Model fused_activation(bool broken) {
  QuantizedModel m;
  const auto x = m.max_pool(m.input({1, 8, 8, 4}), 2, 2);
  m.last_op().attributes.set("fused_activation_function", ir::EnumName{broken ? "RELU" : "NONE"});
  return m.finish({x});
}

ir::Model even_dilation(bool broken) {
  QuantizedModel m;
  const auto x = m.conv(m.input({1, 8, 8, 4}), 4, 3);
  m.last_op().attributes.set("dilation_h_factor", number(2));
  m.last_op().attributes.set("dilation_w_factor", number(broken ? 1 : 2));
  return m.finish({x});
}

ir::Model conv_groups(bool broken) {
  QuantizedModel m;
  const auto x = m.conv(m.input({1, 8, 8, 4}), 4, 3);
  if (broken) m.tensor(m.last_op().inputs[1]) = m.tensor(m.weights({4, 3, 3, 2}));
  return m.finish({x});
}

ir::Model depthwise_dilation(bool broken) {
  QuantizedModel m;
  const auto x = m.depthwise(m.input({1, 8, 8, 4}));
  for (const char* name : {"dilation_h_factor", "dilation_w_factor"}) {
    m.last_op().attributes.set(name, number(broken ? 2 : 1));
  }
  return m.finish({x});
}

ir::Model reduce_batch(bool broken) {
  QuantizedModel m;
  return m.finish({m.mean(m.input({1, 8, 8, 4}), broken ? std::vector<std::int32_t>{0, 1} : std::vector{1, 2})});
}

ir::Model mean_channels(bool broken) {
  QuantizedModel m;
  return m.finish({m.mean(m.input({1, 8, 8, 4}), {broken ? 3 : 2})});
}

ir::Model mean_channels_multiple(bool broken) {
  QuantizedModel m;
  return m.finish({m.mean(m.input({1, 8, 8, broken ? 6 : 8}), {3})});
}

ir::Model mean_pixels(bool broken) {
  QuantizedModel m;
  return m.finish({m.mean(m.input({1, broken ? 256 : 64, 128, 3}), {1, 2})});
}

ir::Model padding(std::vector<std::int32_t> amounts) {
  QuantizedModel m;
  ir::Shape to = {1, 8, 8, 4};
  for (int i = 0; i < 4; ++i) to[i] += amounts[2 * static_cast<std::size_t>(i)];
  const auto x = m.input({1, 8, 8, 4});
  return m.finish({m.op("PAD", {x, m.ints(std::move(amounts), {4, 2})}, {m.computed(to, {})}, "PadOptions", {}, 2)});
}
ir::Model pad_batch(bool broken) {
  return padding(broken ? std::vector{1, 0, 0, 0, 0, 0, 0, 0} : std::vector{0, 0, 1, 0, 0, 0, 0, 0});
}
ir::Model pad_channels(bool broken) {
  return padding(broken ? std::vector{0, 0, 0, 0, 0, 0, 4, 0} : std::vector{0, 0, 0, 0, 4, 0, 0, 0});
}

ir::Model half_pixel(bool broken) {
  QuantizedModel m;
  return m.finish({m.resize("RESIZE_NEAREST_NEIGHBOR", m.input({1, 8, 8, 4}), 16, 16, false, broken)});
}
ir::Model one_pixel(bool broken) {
  QuantizedModel m;
  return m.finish({m.resize("RESIZE_BILINEAR", m.input({1, broken ? 1 : 33, broken ? 1 : 33, 8}), 33, 33, true)});
}
ir::Model resize_precision(bool broken) {
  QuantizedModel m;
  return m.finish({m.resize("RESIZE_BILINEAR", m.input({1, 33, 33, 2}), broken ? 513 : 65, broken ? 513 : 65, true)});
}
ir::Model resize_size(bool broken) {
  QuantizedModel m;
  const int size = broken ? 256 : 64;
  return m.finish({m.resize("RESIZE_BILINEAR", m.input({1, size, size, 32}), 2 * size, 2 * size)});
}

ir::Model shuffled_weights(bool broken) {
  QuantizedModel m;
  const auto x = m.fully_connected(m.input({1, 8}), 4);
  m.last_op().attributes.set("weights_format", ir::EnumName{broken ? "SHUFFLED4x16INT8" : "DEFAULT"});
  return m.finish({x});
}
ir::Model fully_connected_rows(bool broken) {
  QuantizedModel m;
  return m.finish({m.fully_connected(m.input({broken ? 2 : 1, 8}), 4)});
}

ir::Model matmul(const ir::Shape& x, const ir::Shape& y, const ir::Shape& out, bool is_constant) {
  QuantizedModel m;
  const auto a = m.input(x);
  const auto b = is_constant ? m.weights(y) : m.input(y, "other");
  return m.finish({m.op("BATCH_MATMUL", {a, b}, {m.computed(out, {})}, "BatchMatMulOptions", {}, 4)});
}
ir::Model matmul_constant(bool broken) { return matmul({3, 4, 8}, {8, 5}, {3, 4, 5}, broken); }
ir::Model matmul_depth(bool broken) {
  const int depth = broken ? 3201 : 3200;
  return matmul({4, depth}, {depth, 2}, {4, 2}, false);
}

// Its neighbour is a division that the rewrite `one-pass` has marked.
ir::Model div_numerator(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 4, 4, 8});
  const auto one = m.weights({1}, 0.01f);
  ir::Attributes a;
  a.set("fused_activation_function", ir::EnumName{"NONE"});
  if (!broken) a.set(ops::kNumerator, 1.0);
  return m.finish({m.op("DIV", {one, x}, {m.computed({1, 4, 4, 8}, {})}, "DivOptions", a, 2)});
}

ir::Model concatenation_constant(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 4, 4, 2});
  const auto zeros = m.constant_bytes(std::vector<std::uint8_t>(32, broken ? 1 : 0), {1, 4, 4, 2}, DataType::kInt8);
  m.tensor(zeros).quantization = m.tensor(x).quantization;
  return m.finish({m.concatenation({x, zeros}, 3)});
}
ir::Model concatenation_width(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 144, broken ? 6400 : 576}), y = m.input({1, 144, broken ? 2000 : 180}, "other");
  return m.finish({m.concatenation({x, y}, 2)});
}

ir::Model pack_batch(bool broken) {
  QuantizedModel m;
  const auto x = m.input({4, 4}), y = m.input({4, 4}, "other");
  const ir::Shape to = broken ? ir::Shape{2, 4, 4} : ir::Shape{4, 2, 4};
  return m.finish({m.op("PACK", {x, y}, {m.computed(to, {})}, "PackOptions",
                        attributes({{"axis", number(broken ? 0 : 1)}, {"values_count", number(2)}}), 2)});
}
ir::Model split_batch(bool broken) {
  QuantizedModel m;
  const auto axis = m.ints({broken ? 0 : 1}, {});
  const auto x = m.input({4, 4, 4});
  const ir::Shape to = broken ? ir::Shape{2, 4, 4} : ir::Shape{4, 2, 4};
  const auto a = m.computed(to, {}), b = m.computed(to, {});
  m.op("SPLIT", {axis, x}, {a, b}, "SplitOptions", attributes({{"num_splits", number(2)}}), 2);
  return m.finish({a, b});
}
ir::Model tile_batch(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 1, 1, 4});
  const auto multiples = m.ints(broken ? std::vector{2, 1, 1, 1} : std::vector{1, 2, 2, 1});
  const ir::Shape to = broken ? ir::Shape{2, 1, 1, 4} : ir::Shape{1, 2, 2, 4};
  return m.finish({m.op("TILE", {x, multiples}, {m.computed(to, {})}, "TileOptions")});
}

ir::Model prelu_alpha(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 8, 8, 4});
  const auto alpha = m.weights(broken ? ir::Shape{8, 8, 4} : ir::Shape{1, 1, 4});
  return m.finish({m.op("PRELU", {x, alpha}, {m.computed({1, 8, 8, 4}, {})})});
}
ir::Model quantize_float(bool broken) {
  QuantizedModel m;
  const auto x = broken ? m.float_input({1, 8}) : m.input({1, 8});
  return m.finish({m.quantize(x, {DataType::kUInt8, 0.05f, 128})});
}
ir::Model reshape_size(bool broken) {
  QuantizedModel m;
  const int size = broken ? 512 : 128;
  return m.finish({m.reshape(m.input({1, size, size, 12}), {1, size * size * 3, 4})});
}
ir::Model softmax_rows(bool broken) {
  QuantizedModel m;
  return m.finish({m.softmax(m.input({1, broken ? 10 : 1, 16}))});
}
ir::Model softmax_depth(bool broken) {
  QuantizedModel m;
  return m.finish({m.softmax(m.input({1, broken ? 16385 : 16384}))});
}
ir::Model squeeze_leading(bool broken) {
  QuantizedModel m;
  const auto x = m.input(broken ? ir::Shape{1, 5, 1, 10} : ir::Shape{1, 1, 5, 10});
  return m.finish({m.op("SQUEEZE", {x}, {m.computed({1, 5, 10}, {})}, "SqueezeOptions",
                        attributes({{"squeeze_dims", std::vector<std::int64_t>{broken ? 2 : 1}}}))});
}

ir::Model strided_slice(int stride, int new_axis) {
  QuantizedModel m;
  const auto x = m.input({1, 8, 8, 4});
  const auto begin = m.ints({0, 0, 0, 0}), end = m.ints({1, 8, 8, 4}), strides = m.ints({1, 1, stride, 1});
  return m.finish({m.op("STRIDED_SLICE", {x, begin, end, strides}, {m.computed({1, 8, 8 / stride, 4}, {})},
                        "StridedSliceOptions", attributes({{"new_axis_mask", number(new_axis)}}), 2)});
}
ir::Model strided_slice_stride(bool broken) { return strided_slice(broken ? 2 : 1, 0); }
ir::Model strided_slice_mask(bool broken) { return strided_slice(1, broken ? 1 : 0); }

ir::Model transpose_size(bool broken) {
  QuantizedModel m;
  const int size = broken ? 40 : 24;
  return m.finish({m.transpose(m.input({1, size, size, broken ? 64 : 144}), {0, 3, 1, 2})});
}

ir::Model lstm(int width, bool peepholes) {
  QuantizedModel m;
  const int units = 4;
  std::vector<std::int32_t> inputs(24, -1);
  inputs[0] = m.input({1, 3, width});
  for (std::size_t i = 1; i <= 4; ++i) inputs[i] = m.weights({units, width});
  for (std::size_t i = 5; i <= 8; ++i) inputs[i] = m.weights({units, units});
  for (std::size_t i = 12; i <= 15; ++i) inputs[i] = m.ints(std::vector<std::int32_t>(units));
  if (peepholes) inputs[9] = m.weights({units});
  inputs[18] = m.computed({1, units}, {});
  inputs[19] = m.computed({1, units}, {DataType::kInt16, 1.0f / 32768, 0});
  for (const std::size_t state : {18, 19}) {
    m.tensor(inputs[state]).is_variable = true;
    m.name(inputs[state], "state_" + std::to_string(state));
  }
  return m.finish({m.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, {m.computed({1, 3, units}, {})},
                        "UnidirectionalSequenceLSTMOptions")});
}
ir::Model lstm_width(bool broken) { return lstm(broken ? 1280 : 800, false); }
ir::Model lstm_plain(bool broken) { return lstm(8, broken); }

ir::Model type(bool broken) {
  QuantizedModel m;
  if (!broken) return m.finish({m.unary("RELU", m.input({1, 8}))});
  return m.finish({m.unary("RELU", m.float_input({1, 8}))});
}
ir::Model known_op(bool broken) {
  QuantizedModel m;
  const auto x = m.unary("RELU", m.input({1, 8}));
  if (broken) {
    m.last_op().type = "BUILTIN_250";
    m.last_op().builtin_code = 250;
  }
  return m.finish({x});
}
ir::Model operands(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 8});
  return m.finish({m.op("ADD", broken ? std::vector{x} : std::vector{x, x}, {m.computed({1, 8}, {})}, "", {}, 2)});
}
ir::Model missing_operand(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 8});
  return m.finish({m.op("ADD", {broken ? -1 : x, x}, {m.computed({1, 8}, {})}, "", {}, 2)});
}
ir::Model custom_op(bool broken) {
  QuantizedModel m;
  return m.finish({m.unary(broken ? "MyOp" : "RELU", m.input({1, 8}))});
}
ir::Model control_flow(bool broken) {
  QuantizedModel m;
  return m.finish({m.unary(broken ? "WHILE" : "RELU", m.input({1, 8}))});
}
ir::Model supported_op(bool broken) {
  QuantizedModel m;
  return m.finish({m.unary(broken ? "HARD_SWISH" : "RELU6", m.input({1, 8}))});
}
ir::Model runtime(bool broken) {
  QuantizedModel m;
  return m.finish({m.unary(broken ? "RSQRT" : "LOGISTIC", m.input({1, 8}))});
}
ir::Model op_version(bool broken) {
  QuantizedModel m;
  const auto x = m.fully_connected(m.input({1, 8}), 4);
  m.last_op().version = broken ? 12 : 4;
  return m.finish({x});
}
ir::Model static_shape(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 4, 8});
  if (!broken) return m.finish({m.unary("RELU", m.reshape(x, {1, 32}))});
  const auto sizes = m.op("SHAPE", {x}, {m.computed_plain({3}, DataType::kInt32)}, "ShapeOptions");
  return m.finish({m.unary("RELU", m.op("RESHAPE", {x, sizes}, {m.computed({1, 4, 8}, {})}))});
}
ir::Model open_input(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 1, 1, 3});
  m.tensor(x).shape_signature = broken ? std::vector{-1, -1, -1, 3} : std::vector{-1, 1, 1, 3};
  return m.finish({m.conv(x, 4)});
}
ir::Model constant_parameters(bool broken) {
  QuantizedModel m;
  const auto x = m.conv(m.input({1, 8, 8, 4}), 4, 3);
  // Weights behind a TRANSPOSE, as quantization-aware training leaves them.
  if (!broken) return m.finish({x});
  ir::Model model = m.finish({x});
  ir::Subgraph& graph = model.subgraphs[0];
  ir::Tensor computed = graph.tensors[static_cast<std::size_t>(graph.operators[0].inputs[1])];
  computed.buffer = 0;
  graph.tensors.push_back(computed);
  const auto made = static_cast<std::int32_t>(graph.tensors.size()) - 1;
  ir::Operator quantize = graph.operators[0];
  quantize.type = "QUANTIZE";
  quantize.inputs = {graph.operators[0].inputs[1]};
  quantize.outputs = {made};
  graph.operators[0].inputs[1] = made;
  graph.operators.insert(graph.operators.begin(), quantize);
  return model;
}
ir::Model rank(bool broken) {
  QuantizedModel m;
  const auto x = m.input({1, 8, 8, 4});
  return m.finish({m.reshape(x, broken ? ir::Shape{1, 8, 8, 2, 2} : ir::Shape{1, 1, 8, 8, 4})});
}
ir::Model batch(bool broken) {
  QuantizedModel m;
  return m.finish({m.conv(m.input({broken ? 4 : 1, 8, 8, 4}), 4)});
}
ir::Model quantization(bool broken) {
  QuantizedModel m;
  const auto x = m.unary("RELU", m.input({1, 8}));
  if (broken) m.tensor(x).quantization.scale = {};
  if (broken) m.tensor(x).quantization.zero_point = {};
  return m.finish({x});
}
ir::Model zero_point(bool broken) {
  QuantizedModel m;
  const auto x = m.unary("RELU", m.input({1, 8}));
  m.tensor(x).quantization.zero_point = {broken ? 200 : 100};
  return m.finish({x});
}

constexpr RuleCase kCases[] = {
    {"type", type},
    {"known-op", known_op},
    {"operands", operands},
    {"operands", missing_operand},
    {"custom-op", custom_op},
    {"control-flow", control_flow},
    {"supported-op", supported_op},
    {"runtime", runtime, 13},
    {"op-version", op_version},
    {"static-shape", static_shape},
    {"static-shape", open_input},
    {"constant-parameters", constant_parameters},
    {"rank", rank},
    {"batch", batch},
    {"quantization", quantization},
    {"quantization", zero_point},
    {"fused-activation", fused_activation},
    {"even-dilation", even_dilation},
    {"conv-groups", conv_groups},
    {"depthwise-dilation", depthwise_dilation, 11},
    {"reduce-batch", reduce_batch},
    {"mean-channels", mean_channels, 11},
    {"mean-channels-multiple", mean_channels_multiple},
    {"mean-pixels", mean_pixels},
    {"pad-batch", pad_batch},
    {"pad-channels", pad_channels, 11},
    {"resize-half-pixel", half_pixel, 12},
    {"resize-one-pixel", one_pixel},
    {"resize-precision", resize_precision},
    {"resize-size", resize_size},
    {"fully-connected-format", shuffled_weights},
    {"fully-connected-rows", fully_connected_rows},
    {"matmul-constant", matmul_constant},
    {"matmul-depth", matmul_depth},
    {"div-numerator", div_numerator},
    {"concatenation-constant", concatenation_constant},
    {"concatenation-width", concatenation_width},
    {"pack-batch", pack_batch},
    {"split-batch", split_batch},
    {"tile-batch", tile_batch},
    {"prelu-alpha", prelu_alpha},
    {"quantize-float", quantize_float},
    {"reshape-size", reshape_size},
    {"softmax-rows", softmax_rows, 13},
    {"softmax-depth", softmax_depth},
    {"squeeze-leading", squeeze_leading, 11},
    {"strided-slice-stride", strided_slice_stride},
    {"strided-slice-mask", strided_slice_mask},
    {"transpose-size", transpose_size},
    {"lstm-width", lstm_width},
    {"lstm-plain", lstm_plain},
};

}  // namespace

std::span<const RuleCase> rule_cases() { return kCases; }

ir::Model rule_model(std::string_view id, bool broken) {
  const auto found =
      std::find_if(std::begin(kCases), std::end(kCases), [&](const RuleCase& row) { return row.id == id; });
  return found->make(broken);
}

}  // namespace reef::testing

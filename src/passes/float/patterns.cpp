// SPDX-License-Identifier: Apache-2.0
#include "passes/float/patterns.h"

#include <algorithm>
#include <cmath>

#include "passes/float/layout_rules.h"

namespace reef::passes {

bool is_float(const Graph& graph, TensorId tensor) {
  return tensor >= 0 && graph.tensor(tensor).type == ir::DataType::kFloat32;
}

std::optional<WithConstant> with_constant(const Graph& graph, OpId id) {
  const ir::Operator& op = graph.op(id);
  if (op.inputs.size() != 2 || op.outputs.size() != 1) return std::nullopt;
  for (const std::size_t i : {std::size_t{1}, std::size_t{0}}) {
    const TensorId x = op.inputs[1 - i], constant = op.inputs[i];
    if (!graph.is_constant(constant) || graph.is_constant(x)) continue;
    if (graph.shape(x) != graph.shape(op.outputs[0])) return std::nullopt;
    return WithConstant{x, constant, i == 0};
  }
  return std::nullopt;
}

std::optional<WithNumber> with_number(const Graph& graph, OpId op) {
  const auto parts = with_constant(graph, op);
  if (!parts) return std::nullopt;
  const auto number = graph.uniform(parts->constant);
  if (!number) return std::nullopt;
  return WithNumber{parts->x, *number, parts->constant_first};
}

OpId made_by(const Graph& graph, TensorId tensor, OpName type) {
  const OpId op = tensor < 0 ? kNone : graph.producer(tensor);
  return op != kNone && graph.is(op, type) && graph.is_sound(op) ? op : kNone;
}

bool has_no_activation(const Graph& graph, OpId op) {
  return graph.op(op).attributes.get_enum("fused_activation_function", "NONE") == "NONE";
}

ir::Attributes activation_attributes(std::string_view activation) {
  ir::Attributes attributes;
  attributes.set("fused_activation_function", ir::EnumName{std::string(activation)});
  return attributes;
}

bool is_about(double a, double b, double tolerance) { return std::abs(a - b) <= tolerance * std::abs(b); }

std::optional<std::vector<int>> reduced_axes(const Graph& graph, OpId op) {
  const auto values = graph.ints(graph.op(op).inputs[1]);
  if (!values) return std::nullopt;
  std::vector<int> axes;
  for (const std::int64_t value : *values) {
    axes.push_back(normal_axis(value, graph.shape(graph.op(op).inputs[0]).rank()));
    if (axes.back() < 0) return std::nullopt;
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

TensorId reduced_along_last(const Graph& graph, TensorId tensor, OpName type) {
  const OpId op = made_by(graph, tensor, type);
  if (op == kNone || !graph.op(op).attributes.get_bool("keep_dims")) return kNone;
  const TensorId x = graph.op(op).inputs[0];
  const auto axes = reduced_axes(graph, op);
  const bool is_last = axes && axes->size() == 1 && (*axes)[0] == graph.shape(x).rank() - 1;
  return is_last ? x : kNone;
}

TensorId square_root_of(const Graph& graph, TensorId tensor) {
  const OpId op = tensor < 0 ? kNone : graph.producer(tensor);
  if (op == kNone || !graph.is_sound(op)) return kNone;
  const ir::Operator& it = graph.op(op);
  if (it.type == Op::SQUARE) return it.inputs[0];
  if (it.type == Op::MUL) return it.inputs[0] == it.inputs[1] && has_no_activation(graph, op) ? it.inputs[0] : kNone;
  if (it.type != Op::POW) return kNone;
  const auto parts = with_number(graph, op);
  return parts && !parts->number_first && parts->number == 2 ? parts->x : kNone;
}

std::optional<std::vector<float>> per_channel(const Graph& graph, TensorId constant, const ir::Shape& shape) {
  if (shape.rank() == 0) return std::nullopt;
  const auto channels = static_cast<std::size_t>(shape.last());
  const ir::Shape& own = graph.shape(constant);
  if (own.rank() > shape.rank()) return std::nullopt;
  if (const auto number = graph.uniform(constant)) {
    for (int i = 0; i < own.rank(); ++i) {
      if (own.last(i) != 1 && own.last(i) != shape.last(i)) return std::nullopt;
    }
    return std::vector<float>(channels, *number);
  }
  if (own.rank() == 0 || own.elements() != shape.last() || own.last() != shape.last()) return std::nullopt;
  return graph.floats(constant);
}

std::optional<ChannelLine> channel_line(const Graph& graph, OpId id) {
  const auto parts = with_constant(graph, id);
  if (!parts) return std::nullopt;
  const auto values = per_channel(graph, parts->constant, graph.shape(parts->x));
  if (!values) return std::nullopt;
  const std::string& type = graph.type(id);
  ChannelLine line;
  if (type == Op::ADD) {
    line.offset = *values;
  } else if (type == Op::SUB) {
    line.offset = *values;
    if (parts->constant_first) {
      line.scale.assign(values->size(), -1.0f);
    } else {
      for (float& value : line.offset) value = -value;
    }
  } else if (type == Op::MUL) {
    line.scale = *values;
  } else if (type == Op::DIV && !parts->constant_first) {
    for (const float value : *values) line.scale.push_back(1.0f / value);
  } else {
    return std::nullopt;
  }
  for (const float value : line.scale) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return line;
}

bool same_numbers(const Graph& graph, TensorId a, TensorId b) {
  return graph.tensor(a).type == graph.tensor(b).type && graph.tensor(a).quantization == graph.tensor(b).quantization;
}

std::optional<std::vector<std::int64_t>> slice_begins(const Graph& graph, OpId id) {
  if (!graph.is(id, Op::SLICE) || !graph.is_sound(id)) return std::nullopt;
  const ir::Shape& from = graph.shape(graph.op(id).inputs[0]);
  const ir::Shape& to = graph.shape(graph.op(id).outputs[0]);
  auto begins = graph.ints(graph.op(id).inputs[1]);
  if (!begins || static_cast<int>(begins->size()) != from.rank() || to.rank() != from.rank()) return std::nullopt;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const std::int64_t begin = (*begins)[at(axis)];
    if (begin < 0 || begin + to[axis] > from[axis]) return std::nullopt;
  }
  return begins;
}

std::vector<TensorId> slice_operands(Graph& graph, TensorId x, const std::vector<std::int64_t>& begins,
                                     ir::Shape sizes) {
  const TensorId begin = graph.add_ints(std::vector<std::int32_t>(begins.begin(), begins.end()));
  return {x, begin, graph.add_ints(std::vector<std::int32_t>(sizes.begin(), sizes.end()))};
}

AxisPadding same_padding(std::int64_t input, std::int64_t filter, std::int64_t stride, std::int64_t dilation) {
  constexpr std::int64_t kMost = 1 << 20;  // attributes may be any number
  if (stride < 1 || stride > kMost || dilation < 1 || dilation > kMost) return {1, 1};
  const std::int64_t output = (input + stride - 1) / stride;
  const std::int64_t reach = (filter - 1) * dilation + 1;
  const std::int64_t total = std::max<std::int64_t>((output - 1) * stride + reach - input, 0);
  return {total / 2, total - total / 2};
}

std::optional<Layer> as_layer(const Graph& graph, OpId id) {
  if (id == kNone || !graph.is_sound(id)) return std::nullopt;
  const ir::Operator& op = graph.op(id);
  Layer layer;
  layer.op = id;
  if (op.type == Op::DEPTHWISE_CONV_2D) {
    layer.is_depthwise = true;
    layer.output_axis = 3;
  } else if (op.type == Op::FULLY_CONNECTED) {
    if (op.attributes.get_enum("weights_format", "DEFAULT") != "DEFAULT") return std::nullopt;
    layer.input_axis = 1;
  } else if (op.type == Op::TRANSPOSE_CONV) {
    layer.input = 2;
    layer.bias = 3;
  } else if (op.type != Op::CONV_2D) {
    return std::nullopt;
  }
  const TensorId weights = op.inputs[layer.weights];
  const int rank = op.type == Op::FULLY_CONNECTED ? 2 : 4;
  if (!graph.is_constant(weights) || !is_float(graph, weights) || graph.shape(weights).rank() != rank) {
    return std::nullopt;
  }
  if (!is_float(graph, op.inputs[layer.input]) || !is_float(graph, op.outputs[0])) return std::nullopt;
  if (graph.shape(op.outputs[0]).rank() == 0 ||
      graph.shape(op.outputs[0]).last() != graph.shape(weights)[layer.output_axis]) {
    return std::nullopt;
  }
  return layer;
}

std::optional<std::vector<float>> bias_of(const Graph& graph, const Layer& layer) {
  const ir::Operator& op = graph.op(layer.op);
  const auto channels = static_cast<std::size_t>(graph.shape(op.inputs[layer.weights])[layer.output_axis]);
  if (op.inputs.size() <= layer.bias || op.inputs[layer.bias] < 0) return std::vector<float>(channels, 0.0f);
  auto bias = graph.floats(op.inputs[layer.bias]);
  if (!bias || bias->size() != channels) return std::nullopt;
  return bias;
}

void set_bias(Graph& graph, const Layer& layer, std::vector<float> bias) {
  std::vector<TensorId> inputs = graph.op(layer.op).inputs;
  if (inputs.size() <= layer.bias) inputs.resize(layer.bias + 1, kNone);
  const TensorId old = inputs[layer.bias];
  const std::string name =
      old >= 0 ? graph.tensor(old).name : graph.tensor(graph.op(layer.op).outputs[0]).name + "/bias";
  const auto count = static_cast<std::int32_t>(bias.size());
  inputs[layer.bias] = graph.add_floats(std::move(bias), {count}, name);
  graph.set_inputs(layer.op, std::move(inputs));
  // Biases came to it with its third version.
  if (graph.is(layer.op, Op::TRANSPOSE_CONV)) graph.set_type_version(layer.op, 3);
}

}  // namespace reef::passes

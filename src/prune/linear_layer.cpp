// SPDX-License-Identifier: Apache-2.0
#include "prune/linear_layer.h"

#include <algorithm>

#include "ir/constants.h"
#include "ir/op.h"
#include "ops/window.h"

namespace reef::prune {
namespace {

using Kind = LinearLayer::Kind;

struct Operands {
  Kind kind;
  std::size_t input, weights, bias;
};

std::optional<Operands> operands_of(const ir::Operator& op) {
  if (op.type == Op::CONV_2D) return Operands{Kind::kConvolution, 0, 1, 2};
  if (op.type == Op::DEPTHWISE_CONV_2D) return Operands{Kind::kDepthwise, 0, 1, 2};
  if (op.type == Op::FULLY_CONNECTED) return Operands{Kind::kDense, 0, 1, 2};
  if (op.type == Op::TRANSPOSE_CONV) return Operands{Kind::kTransposed, 2, 1, 3};
  return std::nullopt;
}

bool set_dense(LinearLayer& layer, const ir::Shape& x, const ir::Shape& w, const ir::Shape& y) {
  if (w.rank() != 2 || w[1] < 1 || x.elements() % w[1] != 0) return false;
  layer.input_axis = 1;
  layer.inputs = static_cast<std::size_t>(w[1]);
  layer.outputs = static_cast<std::size_t>(w[0]);
  layer.pixels = static_cast<std::size_t>(x.elements() / w[1]);
  return y.elements() == static_cast<std::int64_t>(layer.pixels * layer.outputs);
}

// Sizes of windows, and their places in the input (or, transposed, in the result).
bool set_geometry(LinearLayer& layer, const ir::Operator& op, const ir::Shape& x, const ir::Shape& w,
                  const ir::Shape& y) {
  if (x.rank() != 4 || w.rank() != 4 || y.rank() != 4 || x[0] != 1) return false;
  layer.height = x[1], layer.width = x[2], layer.channels = x[3];
  layer.result_height = y[1], layer.result_width = y[2];
  layer.window_height = w[1], layer.window_width = w[2];
  layer.stride_y = static_cast<std::int32_t>(op.attributes.get_int("stride_h", 1));
  layer.stride_x = static_cast<std::int32_t>(op.attributes.get_int("stride_w", 1));
  layer.dilation_y =
      static_cast<std::int32_t>(std::max<std::int64_t>(op.attributes.get_int("dilation_h_factor", 1), 1));
  layer.dilation_x =
      static_cast<std::int32_t>(std::max<std::int64_t>(op.attributes.get_int("dilation_w_factor", 1), 1));
  const bool transposed = layer.kind == Kind::kTransposed;
  const std::string_view padding = op.attributes.get_enum("padding", "SAME");
  const auto down = ops::window_axis(transposed ? y[1] : x[1], w[1], layer.stride_y, layer.dilation_y, padding);
  const auto across = ops::window_axis(transposed ? y[2] : x[2], w[2], layer.stride_x, layer.dilation_x, padding);
  if (!down.ok() || !across.ok()) return false;
  if (down->output_size != (transposed ? x[1] : y[1]) || across->output_size != (transposed ? x[2] : y[2])) {
    return false;
  }
  layer.pad_y = down->pad_before, layer.pad_x = across->pad_before;
  layer.window = static_cast<std::size_t>(w[1]) * static_cast<std::size_t>(w[2]);
  layer.pixels = static_cast<std::size_t>(y[1]) * static_cast<std::size_t>(y[2]);
  return true;
}

bool set_channels(LinearLayer& layer, const ir::Shape& x, const ir::Shape& w, const ir::Shape& y) {
  if (layer.kind == Kind::kDepthwise) {
    if (x[3] < 1 || y[3] % x[3] != 0 || w[3] != y[3]) return false;
    layer.input_axis = layer.output_axis = 3;
    layer.groups = static_cast<std::size_t>(x[3]);
    layer.inputs = 1;
    layer.outputs = static_cast<std::size_t>(y[3] / x[3]);
    return true;
  }
  layer.input_axis = 3;
  if (w[3] < 1 || x[3] % w[3] != 0 || w[0] != y[3]) return false;
  layer.groups = static_cast<std::size_t>(x[3] / w[3]);
  if (w[0] % static_cast<std::int32_t>(layer.groups) != 0) return false;
  if (layer.kind == Kind::kTransposed && layer.groups != 1) return false;
  layer.inputs = static_cast<std::size_t>(w[3]);
  layer.outputs = static_cast<std::size_t>(w[0]) / layer.groups;
  return true;
}

}  // namespace

void LinearLayer::fill_row(std::span<const float> x, std::size_t pixel, std::size_t group, float* row) const {
  if (kind == Kind::kDense) {
    std::copy_n(x.data() + pixel * inputs, inputs, row);
    return;
  }
  const auto result_y = static_cast<std::int32_t>(pixel) / result_width;
  const auto result_x = static_cast<std::int32_t>(pixel) % result_width;
  for (std::int32_t wy = 0; wy < window_height; ++wy) {
    for (std::int32_t wx = 0; wx < window_width; ++wx, row += inputs) {
      std::int32_t at_y = result_y * stride_y - pad_y + wy * dilation_y;
      std::int32_t at_x = result_x * stride_x - pad_x + wx * dilation_x;
      bool is_inside = true;
      if (kind == Kind::kTransposed) {
        at_y = result_y + pad_y - wy, at_x = result_x + pad_x - wx;
        is_inside = at_y >= 0 && at_x >= 0 && at_y % stride_y == 0 && at_x % stride_x == 0;
        at_y /= stride_y, at_x /= stride_x;
      }
      is_inside = is_inside && at_y >= 0 && at_y < height && at_x >= 0 && at_x < width;
      if (is_inside) {
        std::copy_n(x.data() + (static_cast<std::size_t>(at_y) * width + at_x) * channels + group * inputs, inputs,
                    row);
      } else {
        std::fill_n(row, inputs, 0.0f);
      }
    }
  }
}

std::size_t LinearLayer::weight_at(std::size_t group, std::size_t out, std::size_t column) const {
  if (kind == Kind::kDepthwise) return column * groups * outputs + group * outputs + out;
  return (group * outputs + out) * columns() + column;
}

std::optional<LinearLayer> linear_layer(const ir::Model& model, std::size_t number) {
  const ir::Subgraph& graph = model.subgraphs[0];
  const ir::Operator& op = graph.operators[number];
  const std::optional<Operands> at = operands_of(op);
  if (!at || op.inputs.size() <= at->weights || op.inputs.size() <= at->input || op.outputs.size() != 1) return {};
  LinearLayer layer;
  layer.op = number;
  layer.kind = at->kind;
  layer.input = op.inputs[at->input];
  layer.weights = op.inputs[at->weights];
  layer.bias = op.inputs.size() > at->bias ? op.inputs[at->bias] : -1;
  layer.output = op.outputs[0];
  if (layer.input < 0 || layer.weights < 0) return {};
  const auto tensor = [&](std::int32_t t) -> const ir::Tensor& { return graph.tensors[reef::at(t)]; };
  const ir::Shape &x = tensor(layer.input).shape, &w = tensor(layer.weights).shape, &y = tensor(layer.output).shape;
  if (!ir::is_float_constant(model, tensor(layer.weights)) || tensor(layer.input).type != ir::DataType::kFloat32) {
    return {};
  }
  if (layer.bias >= 0 && !ir::is_float_constant(model, tensor(layer.bias))) return {};
  if (!x.is_usable() || !y.is_usable() || !w.is_usable() || ir::is_constant(model, tensor(layer.input))) return {};
  if (layer.kind == Kind::kDense) return set_dense(layer, x, w, y) ? std::optional(layer) : std::nullopt;
  return set_geometry(layer, op, x, w, y) && set_channels(layer, x, w, y) ? std::optional(layer) : std::nullopt;
}

std::vector<LinearLayer> linear_layers(const ir::Model& model) {
  std::vector<LinearLayer> result;
  for (std::size_t i = 0; i < model.subgraphs[0].operators.size(); ++i) {
    if (auto layer = linear_layer(model, i)) result.push_back(*layer);
  }
  return result;
}

}  // namespace reef::prune

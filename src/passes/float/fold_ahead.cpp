// SPDX-License-Identifier: Apache-2.0
// Arithmetic with constants in front of a layer goes into its weights and bias: the normalization of a picture at the
// network's beginning, a batch normalization in front of a convolution. What is added can only be folded where no
// padding is added: padding is zero behind the addition. Float32 only; results differ by rounding.
#include <cmath>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool adds_padding(const Graph& graph, const Layer& layer) {
  const ir::Operator& op = graph.op(layer.op);
  if (op.type == Op::FULLY_CONNECTED || op.attributes.get_enum("padding") == "VALID") return false;
  const ir::Shape& shape = graph.shape(op.inputs[layer.input]);
  const ir::Shape& weights = graph.shape(op.inputs[layer.weights]);
  const AxisPadding rows = same_padding(shape[1], weights[1], op.attributes.get_int("stride_h", 1),
                                        op.attributes.get_int("dilation_h_factor", 1));
  const AxisPadding columns = same_padding(shape[2], weights[2], op.attributes.get_int("stride_w", 1),
                                           op.attributes.get_int("dilation_w_factor", 1));
  return rows.before + rows.after + columns.before + columns.after > 0;
}

// For every weight, the channel of the input that it is multiplied with.
std::size_t channel_of(const Layer& layer, std::size_t i, std::size_t outputs, std::size_t inputs) {
  return layer.is_depthwise ? (i % outputs) / (outputs / inputs) : i % inputs;
}
std::size_t result_of(const Layer& layer, std::size_t i, std::size_t outputs, std::size_t per_output) {
  return layer.is_depthwise ? i % outputs : i / per_output;
}

bool fold_ahead_at(Graph& graph, OpId id) {
  const std::string& type = graph.type(id);
  const auto parts = with_constant(graph, id);
  if (!parts || !is_float(graph, parts->x) || !has_no_activation(graph, id)) return false;
  const bool scales = type == Op::MUL || (type == Op::DIV && !parts->constant_first);
  const bool shifts = type == Op::ADD || type == Op::SUB;
  if (!scales && !shifts) return false;
  const TensorId y = graph.op(id).outputs[0];
  const OpId user = graph.only_user(y);
  const auto layer = as_layer(graph, user);
  if (!layer || graph.is(user, Op::TRANSPOSE_CONV) || graph.op(user).inputs[0] != y) return false;
  const TensorId weights_id = graph.op(user).inputs[1];
  const ir::Shape shape = graph.shape(y), weights_shape = graph.shape(weights_id);
  auto values = per_channel(graph, parts->constant, shape);
  auto bias = bias_of(graph, *layer);
  const auto inputs = static_cast<std::size_t>(shape.rank() > 0 ? shape.last() : 0);
  const auto outputs = static_cast<std::size_t>(weights_shape[layer->output_axis]);
  if (!values || !bias || inputs == 0 || (layer->is_depthwise && outputs % inputs != 0)) return false;
  if (!layer->is_depthwise && weights_shape.last() != shape.last()) return false;  // groups, or a flattened map
  const bool negates = type == Op::SUB && parts->constant_first;
  if (shifts && adds_padding(graph, *layer)) return false;
  std::vector<float> weights = *graph.floats(weights_id);
  const std::size_t per_output = weights.size() / outputs;
  const float sign = type == Op::SUB && !parts->constant_first ? -1.0f : 1.0f;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float value = (*values)[channel_of(*layer, i, outputs, inputs)];
    if (scales) {
      weights[i] = type == Op::MUL ? weights[i] * value : weights[i] / value;
    } else {
      (*bias)[result_of(*layer, i, outputs, per_output)] += sign * weights[i] * value;
      if (negates) weights[i] = -weights[i];
    }
    if (!std::isfinite(weights[i])) return false;
  }
  if (scales || negates) {
    graph.set_input(user, 1, graph.add_floats(std::move(weights), weights_shape, graph.tensor(weights_id).name));
  }
  if (shifts) set_bias(graph, *layer, std::move(*bias));
  graph.set_input(user, 0, parts->x);
  return true;
}

}  // namespace

constinit const Pass fold_ahead_float_pass = {.name = "fold-ahead",
                                              .summary =
                                                  "MUL, ADD, SUB, DIV by constants go into the layer behind them; what "
                                                  "is added only where that layer pads nothing.",
                                              .safety = Safety::kRounding,
                                              .at = fold_ahead_at};

}  // namespace reef::passes

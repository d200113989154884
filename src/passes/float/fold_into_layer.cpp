// SPDX-License-Identifier: Apache-2.0
// Arithmetic with constants behind a layer (CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV, FULLY_CONNECTED) goes into its
// weights and bias: a batch normalization written as MUL and ADD costs nothing afterwards. Float32 only; results differ
// by rounding.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

void scale_weights(Graph& graph, const Layer& layer, const std::vector<float>& scale) {
  const TensorId id = graph.op(layer.op).inputs[layer.weights];
  const ir::Shape shape = graph.shape(id);
  std::vector<float> weights = *graph.floats(id);
  const auto inner = static_cast<std::size_t>(shape.product(layer.output_axis + 1, shape.rank()));
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] *= scale[i / inner % scale.size()];
  graph.set_input(layer.op, layer.weights, graph.add_floats(std::move(weights), shape, graph.tensor(id).name));
}

bool fold_into_layer_at(Graph& graph, OpId id) {
  const auto parts = with_constant(graph, id);
  if (!parts || !is_float(graph, parts->x) || !graph.has_one_user(parts->x)) return false;
  const auto layer = as_layer(graph, graph.producer(parts->x));
  if (!layer || !has_no_activation(graph, layer->op)) return false;
  const auto line = channel_line(graph, id);
  auto bias = bias_of(graph, *layer);
  if (!line || !bias) return false;
  for (std::size_t i = 0; i < line->scale.size(); ++i) (*bias)[i] *= line->scale[i];
  for (std::size_t i = 0; i < line->offset.size(); ++i) (*bias)[i] += line->offset[i];
  const std::string activation(graph.op(id).attributes.get_enum("fused_activation_function", "NONE"));
  if (activation != "NONE" && graph.is(layer->op, Op::TRANSPOSE_CONV)) return false;  // it can have none
  if (!line->scale.empty()) scale_weights(graph, *layer, line->scale);
  set_bias(graph, *layer, std::move(*bias));
  if (activation != "NONE") graph.set_attribute(layer->op, "fused_activation_function", ir::EnumName{activation});
  const TensorId y = graph.op(id).outputs[0];
  graph.remove(id);
  graph.set_outputs(layer->op, {y});
  return true;
}

}  // namespace

constinit const Pass fold_into_layer_float_pass = {
    .name = "fold-into-layer",
    .summary =
        "MUL, ADD, SUB, DIV by constants go into weights and bias of the CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV or "
        "FULLY_CONNECTED before them.",
    .safety = Safety::kRounding,
    .at = fold_into_layer_at};

}  // namespace reef::passes

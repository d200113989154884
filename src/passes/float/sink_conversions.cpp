// SPDX-License-Identifier: Apache-2.0
// A TRANSPOSE, or a RESHAPE of axes of size 1, changes places with the function of single elements or the arithmetic
// with constants that follows it, where nobody else reads what is between. Nothing is gained by that alone, but scales,
// biases and activations come to stand behind the layer that they can be folded into.
//
// Conversions only ever move towards the outputs by this, so it ends.
#include <algorithm>

#include "passes/float/layout_rules.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr Op kMovable[] = {Op::ADD,  Op::SUB,        Op::MUL,          Op::DIV,      Op::MAXIMUM, Op::MINIMUM,
                           Op::RELU, Op::RELU6,      Op::RELU_N1_TO_1, Op::LOGISTIC, Op::TANH,    Op::HARD_SWISH,
                           Op::GELU, Op::LEAKY_RELU, Op::RELU_0_TO_1,  Op::PRELU,    Op::ELU};

// Any RESHAPE in front of a function of one operand.
bool sink_reshape(Graph& graph, OpId reshape) {
  const TensorId x = graph.op(reshape).inputs[0], between = graph.op(reshape).outputs[0];
  const OpId op = graph.only_user(between);
  if (op == kNone || !graph.is_sound(op) || graph.op(op).inputs.size() != 1) return false;
  if (!is_one_of(graph.type(op), kMovable)) return false;
  const TensorId y = graph.op(op).outputs[0];
  if (graph.shape(x).elements() != graph.shape(y).elements() || graph.tensor(y).quantization.is_per_axis() ||
      graph.tensor(x).quantization.is_per_axis()) {
    return false;
  }
  const ir::Shape shape = graph.shape(x), target = graph.shape(y);
  const TensorId result = graph.add_like(y, shape);
  graph.set_inputs(op, {x});
  graph.set_outputs(op, {result});
  graph.reshape(op, result, target, y);
  return true;
}

bool sink_conversions_at(Graph& graph, OpId conversion) {
  const auto layout = conversion_of(graph, conversion);
  if (!layout) return graph.is(conversion, Op::RESHAPE) && sink_reshape(graph, conversion);
  const TensorId x = graph.op(conversion).inputs[0], between = graph.op(conversion).outputs[0];
  const OpId op = graph.only_user(between);
  if (op == kNone || !graph.is_sound(op) || graph.op(op).outputs.size() != 1) return false;
  if (!is_one_of(graph.type(op), kMovable)) return false;
  const std::vector<TensorId> inputs = graph.op(op).inputs;
  const TensorId y = graph.op(op).outputs[0];
  if (graph.shape(y) != graph.shape(between)) return false;
  if (graph.shape(x).rank() > std::max(4, graph.shape(y).rank())) return false;  // runtimes refuse many axes
  Relayout layouts;
  layouts.inputs.resize(inputs.size());
  layouts.outputs = {inverse(*layout, graph.shape(x).rank())};
  if (!kElementwiseRule.complete(graph, op, layouts) || !graph.can_lay_out(y, *layouts.outputs[0])) return false;
  if (!fits_shape(*layouts.outputs[0], graph.shape(y))) return false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == between) continue;
    if (!graph.is_constant(inputs[i]) || !graph.can_lay_out(inputs[i], *layouts.inputs[i])) return false;
    if (!fits_shape(*layouts.inputs[i], graph.shape(inputs[i]))) return false;
  }
  std::vector<TensorId> changed;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool stays = inputs[i] != between && is_identity(*layouts.inputs[i], graph.shape(inputs[i]));
    changed.push_back(inputs[i] == between ? x
                      : stays              ? inputs[i]
                                           : graph.add_in_layout(inputs[i], *layouts.inputs[i]));
  }
  const TensorId result = graph.add_in_layout(y, *layouts.outputs[0]);
  graph.set_inputs(op, std::move(changed));
  graph.set_outputs(op, {result});
  graph.convert(op, result, *layout, y);
  return true;
}

}  // namespace

constinit const Pass sink_conversions_float_pass = {
    .name = "sink-conversions",
    .summary =
        "TRANSPOSE and RESHAPE go behind functions of single elements and arithmetic with constants, which then stand "
        "behind the layer that takes them in.",
    .at = sink_conversions_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// SQUEEZE and EXPAND_DIMS are reshapes. In a float model all of them become RESHAPE, so that the other passes know one
// operator for it; for the chip only those that do not fit: runtimes below 13 know only RESHAPE (and some forms of
// SQUEEZE).
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool is_reshape(const Graph& graph, OpId id) {
  return (graph.is(id, Op::SQUEEZE) || graph.is(id, Op::EXPAND_DIMS)) && graph.is_sound(id) &&
         graph.shape(graph.op(id).inputs[0]).elements() == graph.shape(graph.op(id).outputs[0]).elements();
}

bool squeeze_at(Graph& graph, OpId id) {
  if (!is_reshape(graph, id)) return false;
  const TensorId x = graph.op(id).inputs[0];
  const ir::Shape shape = graph.shape(graph.op(id).outputs[0]);
  ir::Attributes attributes;
  attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
  graph.become(id, Op::RESHAPE, "ReshapeOptions", std::move(attributes),
               {x, graph.add_ints({shape.begin(), shape.end()})});
  return true;
}

// 8-bit tensors of one scale; others, which runtimes without all of TFLite's types may want so, with all they have.
bool keeps_values(const Graph& graph, TensorId x, TensorId y) {
  if (ir::is_integer_8(graph.tensor(x).type)) return graph.affine(x) && graph.same_quantization(x, y);
  return graph.tensor(x).type == graph.tensor(y).type && graph.tensor(x).quantization == graph.tensor(y).quantization;
}

bool squeeze_at_on_chip(ChipGraph& graph, OpId id) {
  if (!is_reshape(graph, id)) return false;
  const TensorId x = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  if (!keeps_values(graph, x, y) || graph.fits(id)) return false;
  OpList list(graph, graph.tensor(y).name);
  list.reshape(x, graph.shape(y), y);
  return graph.commit(id, list.take(), "RESHAPE");
}

}  // namespace

constinit const Pass squeeze_shape_pass = {
    .name = "squeeze",
    .summary = "SQUEEZE and EXPAND_DIMS become RESHAPE; after quantization only where they do not map.",
    .at = squeeze_at,
    .at_on_chip = squeeze_at_on_chip};

}  // namespace reef::passes

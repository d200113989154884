// SPDX-License-Identifier: Apache-2.0
// max(x, a x) with a from 0 to 1 becomes LEAKY_RELU. Float32 only; exact.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool leaky_relu_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::MAXIMUM) || !is_float(graph, graph.op(id).outputs[0])) return false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const TensorId x = graph.op(id).inputs[side];
    const OpId product = made_by(graph, graph.op(id).inputs[1 - side], Op::MUL);
    if (product == kNone || !has_no_activation(graph, product)) continue;
    const auto parts = with_number(graph, product);
    if (!parts || parts->x != x || !(parts->number > 0 && parts->number < 1)) continue;
    ir::Attributes attributes;
    attributes.set("alpha", static_cast<double>(parts->number));
    graph.become(id, Op::LEAKY_RELU, "LeakyReluOptions", std::move(attributes), {x});
    return true;
  }
  return false;
}

}  // namespace

constinit const Pass leaky_relu_float_pass = {.name = "leaky-relu",
                                              .summary = "max(x, a x) becomes LEAKY_RELU.",
                                              .safety = Safety::kRounding,
                                              .at = leaky_relu_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// exp(x - max(x)) / sum(exp(x - max(x))) over the last axis becomes SOFTMAX, with or without the maximum. Float32 only;
// differs by rounding (and does not overflow where the form without maximum would).
#include "simplify/pass.h"
#include "simplify/patterns.h"

namespace reef::simplify {
namespace {

// x of exp(x - max(x)) or of exp(x).
TensorId exponent_of(const Graph& graph, TensorId tensor) {
  const OpId exp = made_by(graph, tensor, "EXP");
  if (exp == kNone) return kNone;
  const TensorId argument = graph.op(exp).inputs[0];
  const OpId difference = made_by(graph, argument, "SUB");
  if (difference == kNone || !has_no_activation(graph, difference)) return argument;
  const TensorId x = graph.op(difference).inputs[0];
  return reduced_along_last(graph, graph.op(difference).inputs[1], "REDUCE_MAX") == x ? x : argument;
}

bool at(Graph& graph, OpId id) {
  if (!graph.is(id, "DIV") || !has_no_activation(graph, id)) return false;
  const TensorId numerator = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  if (!is_float(graph, y) || reduced_along_last(graph, graph.op(id).inputs[1], "SUM") != numerator) return false;
  const TensorId x = exponent_of(graph, numerator);
  if (x == kNone || graph.shape(x) != graph.shape(y)) return false;
  ir::Attributes attributes;
  attributes.set("beta", 1.0);
  graph.become(id, "SOFTMAX", "SoftmaxOptions", std::move(attributes), {x});
  return true;
}

}  // namespace

extern const Pass softmax_pass;
constinit const Pass softmax_pass = {
    .name = "softmax", .summary = "Softmax written out over the last axis becomes SOFTMAX.", .at = at};

}  // namespace reef::simplify

// SPDX-License-Identifier: Apache-2.0
// exp(x - max(x)) / sum(exp(x - max(x))) over the last axis becomes SOFTMAX, with or without the maximum, and so does
// exp(log_softmax(x)). Float32 only;
// differs by rounding (and does not overflow where the form without maximum would). A positive factor in front of
// SOFTMAX, as attention has it, becomes its beta: one tensor less to round when the model is quantized.
#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// x of exp(x - max(x)) or of exp(x).
TensorId exponent_of(const Graph& graph, TensorId tensor) {
  const OpId exp = made_by(graph, tensor, Op::EXP);
  if (exp == kNone) return kNone;
  const TensorId argument = graph.op(exp).inputs[0];
  const OpId difference = made_by(graph, argument, Op::SUB);
  if (difference == kNone || !has_no_activation(graph, difference)) return argument;
  const TensorId x = graph.op(difference).inputs[0];
  return reduced_along_last(graph, graph.op(difference).inputs[1], Op::REDUCE_MAX) == x ? x : argument;
}

void become_softmax(Graph& graph, OpId id, TensorId x) {
  ir::Attributes attributes;
  attributes.set("beta", 1.0);
  graph.become(id, Op::SOFTMAX, "SoftmaxOptions", std::move(attributes), {x});
}

// exp(log_softmax(x)), where weights are first computed as logarithms.
bool is_of_logarithms(Graph& graph, OpId id) {
  const OpId logarithms = made_by(graph, graph.op(id).inputs[0], Op::LOG_SOFTMAX);
  if (logarithms == kNone || !is_float(graph, graph.op(id).outputs[0])) return false;
  become_softmax(graph, id, graph.op(logarithms).inputs[0]);
  return true;
}

bool absorb_factor(Graph& graph, OpId id) {
  const TensorId scaled = graph.op(id).inputs[0];
  const OpId product = made_by(graph, scaled, Op::MUL);
  if (product == kNone || !graph.has_one_user(scaled) || !is_float(graph, scaled)) return false;
  const auto parts = with_number(graph, product);
  if (!parts || !has_no_activation(graph, product) || !(parts->number > 0) || !std::isfinite(parts->number))
    return false;
  const double beta = graph.op(id).attributes.get_float("beta", 1) * parts->number;
  graph.set_attribute(id, "beta", static_cast<double>(static_cast<float>(beta)));
  graph.set_input(id, 0, parts->x);
  return true;
}

// softmax(f x + m) is that of x + m / f with beta f: a mask does not keep the factor where it is.
bool absorb_factor_before_mask(Graph& graph, OpId id) {
  const TensorId masked = graph.op(id).inputs[0];
  const OpId sum = made_by(graph, masked, Op::ADD);
  if (sum == kNone || !graph.has_one_user(masked) || !is_float(graph, masked) || !has_no_activation(graph, sum)) {
    return false;
  }
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const TensorId scaled = graph.op(sum).inputs[side], mask = graph.op(sum).inputs[1 - side];
    const OpId product = made_by(graph, scaled, Op::MUL);
    if (product == kNone || !graph.has_one_user(scaled) || graph.shape(scaled) != graph.shape(masked)) continue;
    const auto parts = with_number(graph, product);
    if (!parts || !has_no_activation(graph, product) || !(parts->number > 0) || !std::isfinite(1 / parts->number) ||
        graph.shape(parts->x) != graph.shape(scaled)) {
      continue;
    }
    TensorId other = kNone;
    if (const auto values = graph.floats(mask); values && graph.is_constant(mask)) {
      std::vector<float> divided = *values;
      for (float& value : divided) value = std::max(value / parts->number, std::numeric_limits<float>::lowest());
      other = graph.add_floats(std::move(divided), graph.shape(mask), graph.tensor(mask).name + "/divided");
    } else {
      other = graph.add_like(mask, graph.shape(mask));
      const TensorId number = graph.add_floats({1 / parts->number}, {}, graph.tensor(mask).name + "/divisor");
      graph.add_op(sum, Op::MUL, "MulOptions", activation_attributes("NONE"), {mask, number}, {other});
    }
    const double beta = graph.op(id).attributes.get_float("beta", 1) * parts->number;
    graph.set_attribute(id, "beta", static_cast<double>(static_cast<float>(beta)));
    std::vector<TensorId> inputs = {parts->x, other};
    graph.set_inputs(sum, std::move(inputs));
    return true;
  }
  return false;
}

bool softmax_at(Graph& graph, OpId id) {
  if (graph.is(id, Op::SOFTMAX)) return absorb_factor(graph, id) || absorb_factor_before_mask(graph, id);
  if (graph.is(id, Op::EXP)) return is_of_logarithms(graph, id);
  if (!graph.is(id, Op::DIV) || !has_no_activation(graph, id)) return false;
  const TensorId numerator = graph.op(id).inputs[0], y = graph.op(id).outputs[0];
  if (!is_float(graph, y) || reduced_along_last(graph, graph.op(id).inputs[1], Op::SUM) != numerator) return false;
  const TensorId x = exponent_of(graph, numerator);
  if (x == kNone || graph.shape(x) != graph.shape(y)) return false;
  become_softmax(graph, id, x);
  return true;
}

}  // namespace

constinit const Pass softmax_float_pass = {
    .name = "softmax",
    .summary = "Softmax written out over the last axis becomes SOFTMAX; a factor in front of it its beta.",
    .safety = Safety::kRounding,
    .at = softmax_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// x * relu6(x + 3) / 6 becomes HARD_SWISH, with the sixth in any place and also as x * clamp(x / 6 + 1/2, 0, 1).
// Float32 only; results differ by rounding.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr double kSixth = 1.0 / 6;

// t = factor * rest, taking one multiplication or division by a number off.
struct Scaled {
  TensorId rest = kNone;
  double factor = 1;
};
Scaled unscaled(const Graph& graph, TensorId tensor) {
  const OpId op = graph.producer(tensor);
  if (op == kNone || !graph.is_sound(op) || !has_no_activation(graph, op)) return {tensor, 1};
  const bool is_product = graph.is(op, Op::MUL), is_quotient = graph.is(op, Op::DIV);
  if (!is_product && !is_quotient) return {tensor, 1};
  const auto parts = with_number(graph, op);
  if (!parts || parts->number == 0 || (is_quotient && parts->number_first)) return {tensor, 1};
  return {parts->x, is_product ? parts->number : 1.0 / parts->number};
}

// tensor = x + offset with an activation, fused or behind it: x and the offset.
std::optional<WithNumber> sum_with(const Graph& graph, TensorId tensor, Op activation) {
  OpId op = graph.producer(tensor);
  if (op == kNone || !graph.is_sound(op)) return std::nullopt;
  if (graph.is(op, activation)) {
    op = graph.producer(graph.op(op).inputs[0]);
    if (op == kNone || !graph.is_sound(op) || !graph.is(op, Op::ADD) || !has_no_activation(graph, op)) {
      return std::nullopt;
    }
  } else if (!graph.is(op, Op::ADD) ||
             graph.op(op).attributes.get_enum("fused_activation_function", "NONE") != activation) {
    return std::nullopt;
  }
  return with_number(graph, op);
}

// The factor f for which tensor = f * relu6(x + 3).
std::optional<double> hard_sigmoid(const Graph& graph, TensorId tensor, TensorId x) {
  const Scaled outer = unscaled(graph, tensor);
  if (const auto sum = sum_with(graph, outer.rest, Op::RELU6); sum && sum->x == x && sum->number == 3)
    return outer.factor;
  const auto sum = sum_with(graph, outer.rest, Op::RELU_0_TO_1);
  if (!sum || !is_about(sum->number, 0.5)) return std::nullopt;
  const Scaled inner = unscaled(graph, sum->x);
  if (inner.rest != x || !is_about(inner.factor, kSixth)) return std::nullopt;
  return outer.factor * kSixth;
}

bool hard_swish_at(Graph& graph, OpId id) {
  const TensorId y = graph.op(id).outputs[0];
  if (!is_float(graph, y)) return false;
  if (!graph.is(id, Op::MUL) && !graph.is(id, Op::DIV)) return false;
  if (!has_no_activation(graph, id)) return false;
  // The product is this operator or the one before it, with a scale here.
  const Scaled outer = unscaled(graph, y);
  const OpId product = made_by(graph, outer.rest, Op::MUL);
  if (product == kNone || !has_no_activation(graph, product)) return false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const Scaled one = unscaled(graph, graph.op(product).inputs[side]);
    for (const TensorId x : {graph.op(product).inputs[side], one.rest}) {
      const double scale = x == one.rest ? one.factor : 1;
      const auto factor = hard_sigmoid(graph, graph.op(product).inputs[1 - side], x);
      if (!factor || !is_about(*factor * scale * outer.factor, kSixth)) continue;
      if (graph.shape(x) != graph.shape(y)) continue;
      graph.become(id, Op::HARD_SWISH, "HardSwishOptions", {}, {x});
      return true;
    }
  }
  return false;
}

}  // namespace

constinit const Pass hard_swish_float_pass = {.name = "hard-swish",
                                              .summary = "x * relu6(x + 3) / 6, in its forms, becomes HARD_SWISH.",
                                              .safety = Safety::kRounding,
                                              .at = hard_swish_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// Squares and roots in one form, so that a layer normalization written out is always MEAN, SUB, SQUARED_DIFFERENCE,
// MEAN, ADD, RSQRT, MUL (then MUL and ADD by constants): POW by 2, 0.5, -0.5 and -1, SQUARE, a division by a root.
// SQUARE is MUL(x, x), which the Edge TPU runs. Float32 only; results differ by rounding.
#include <cmath>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool simplify_square(Graph& graph, OpId id) {
  const TensorId y = graph.op(id).outputs[0];
  const TensorId x = square_root_of(graph, y);
  if (x == kNone) return false;
  // (a - b)^2; the difference may be read by others too.
  const OpId difference = made_by(graph, x, Op::SUB);
  if (difference != kNone && has_no_activation(graph, difference)) {
    const std::vector<TensorId> operands = graph.op(difference).inputs;
    graph.become(id, Op::SQUARED_DIFFERENCE, "SquaredDifferenceOptions", {}, operands);
    return true;
  }
  if (graph.is(id, Op::MUL)) return false;
  graph.become(id, Op::MUL, "MulOptions", activation_attributes("NONE"), {x, x});
  return true;
}

bool simplify_power(Graph& graph, OpId id) {
  if (!graph.is(id, Op::POW)) return false;
  const auto parts = with_number(graph, id);
  if (!parts || parts->number_first) return false;
  if (parts->number == 0.5f || parts->number == -0.5f) {
    graph.become(id, parts->number > 0 ? Op::SQRT : Op::RSQRT, "", {}, {parts->x});
    return true;
  }
  if (parts->number != -1.0f) return false;
  const TensorId one = graph.add_floats({1.0f}, {}, "reef/one");
  graph.become(id, Op::DIV, "DivOptions", activation_attributes("NONE"), {one, parts->x});
  return true;
}

// a / sqrt(b) = a * rsqrt(b), and 1 / sqrt(b) = rsqrt(b).
bool simplify_division(Graph& graph, OpId id) {
  if (!graph.is(id, Op::DIV)) return false;
  const TensorId numerator = graph.op(id).inputs[0], root = graph.op(id).inputs[1];
  const OpId sqrt = made_by(graph, root, Op::SQRT);
  if (sqrt == kNone) return false;
  const TensorId x = graph.op(sqrt).inputs[0];
  if (graph.uniform(numerator) == 1.0f && has_no_activation(graph, id) &&
      graph.shape(x) == graph.shape(graph.op(id).outputs[0])) {
    graph.become(id, Op::RSQRT, "", {}, {x});
    return true;
  }
  const TensorId inverse = graph.add_like(root, graph.shape(root));
  graph.add_op(id, Op::RSQRT, "", {}, {x}, {inverse});
  ir::Attributes attributes =
      activation_attributes(graph.op(id).attributes.get_enum("fused_activation_function", "NONE"));
  graph.become(id, Op::MUL, "MulOptions", std::move(attributes), {numerator, inverse});
  return true;
}

// a / b is a * (1 / b), where b is computed: the sums by which linear attention divides, the mean of what is around a
// pixel. The inverses have a range of their own, of which the quantizer knows how far it may reach, and they are a
// function of one variable, for which the Edge TPU has a table; it has none for quotients.
bool divide_by_computed(Graph& graph, OpId id) {
  if (!graph.is(id, Op::DIV)) return false;
  const TensorId x = graph.op(id).inputs[0], divisor = graph.op(id).inputs[1];
  // A number divided by something is such a function already.
  if (graph.uniform(x) || graph.is_constant(divisor) || !is_float(graph, divisor)) return false;
  const TensorId one = graph.add_floats({1.0f}, {}, "reef/one");
  const TensorId inverse = graph.add_like(divisor, graph.shape(divisor));
  graph.add_op(id, Op::DIV, "DivOptions", activation_attributes("NONE"), {one, divisor}, {inverse});
  ir::Attributes attributes =
      activation_attributes(graph.op(id).attributes.get_enum("fused_activation_function", "NONE"));
  graph.become(id, Op::MUL, "MulOptions", std::move(attributes), {x, inverse});
  return true;
}

bool divide_by_constant(Graph& graph, OpId id) {
  if (!graph.is(id, Op::DIV)) return false;
  const TensorId x = graph.op(id).inputs[0], divisor = graph.op(id).inputs[1];
  auto values = graph.floats(divisor);
  if (!values || graph.is_constant(x)) return false;
  for (float& value : *values) {
    value = 1.0f / value;
    if (!std::isnormal(value)) return false;
  }
  ir::Attributes attributes =
      activation_attributes(graph.op(id).attributes.get_enum("fused_activation_function", "NONE"));
  const ir::Shape shape = graph.shape(divisor);
  const std::string name = graph.tensor(divisor).name;
  graph.become(id, Op::MUL, "MulOptions", std::move(attributes),
               {x, graph.add_floats(std::move(*values), shape, name)});
  return true;
}

bool powers_at(Graph& graph, OpId id) {
  if (!is_float(graph, graph.op(id).outputs[0])) return false;
  return simplify_square(graph, id) || simplify_power(graph, id) || simplify_division(graph, id) ||
         divide_by_constant(graph, id) || divide_by_computed(graph, id);
}

}  // namespace

constinit const Pass powers_float_pass = {
    .name = "powers",
    .summary =
        "Squares, roots, divisions by roots, by constants and by what is computed in one form each: a layer "
        "normalization is always MEAN, SUB, SQUARED_DIFFERENCE, MEAN, ADD, RSQRT, MUL, MUL, ADD.",
    .safety = Safety::kRounding,
    .at = powers_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// 1 / (1 + exp(-x)) becomes LOGISTIC(x), and n / (1 + exp(-x)) becomes n * LOGISTIC(x): sigmoid gates and SiLU written
// out, and the step function of text detectors, 1 / (1 + exp(-50 (p - t))). Float32 only; results differ by rounding,
// and do not overflow where the exponential would.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// a of 1 + exp(a); kNone: the tensor is none.
TensorId exponent_beside_one(const Graph& graph, TensorId tensor) {
  const OpId sum = made_by(graph, tensor, Op::ADD);
  if (sum == kNone || !has_no_activation(graph, sum)) return kNone;
  const auto parts = with_number(graph, sum);
  const OpId exp = parts && parts->number == 1.0f ? made_by(graph, parts->x, Op::EXP) : kNone;
  return exp == kNone || graph.shape(parts->x) != graph.shape(tensor) ? kNone : graph.op(exp).inputs[0];
}

// -a, without a NEG, for which there is no 8-bit kernel.
TensorId negative(Graph& graph, OpId near, TensorId a) {
  if (const OpId neg = made_by(graph, a, Op::NEG); neg != kNone) return graph.op(neg).inputs[0];
  float factor = -1;
  TensorId x = a;
  const OpId product = made_by(graph, a, Op::MUL);
  const auto parts =
      product == kNone || !has_no_activation(graph, product) ? std::nullopt : with_number(graph, product);
  if (parts && graph.shape(parts->x) == graph.shape(a)) {
    factor = -parts->number;
    x = parts->x;
  }
  if (factor == 1) return x;
  const TensorId result = graph.add_like(a, graph.shape(a));
  graph.add_op(near, Op::MUL, "MulOptions", activation_attributes("NONE"),
               {x, graph.add_floats({factor}, {}, "reef/factor")}, {result});
  return result;
}

bool logistic_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::DIV) || !has_no_activation(graph, id)) return false;
  const TensorId numerator = graph.op(id).inputs[0], divisor = graph.op(id).inputs[1], y = graph.op(id).outputs[0];
  if (!is_float(graph, y) || graph.shape(divisor) != graph.shape(y)) return false;
  const TensorId a = exponent_beside_one(graph, divisor);
  if (a == kNone) return false;
  const TensorId x = negative(graph, id, a);
  if (graph.uniform(numerator) == 1.0f) {
    graph.become(id, Op::LOGISTIC, "", {}, {x});
    return true;
  }
  const TensorId gate = graph.add_like(divisor, graph.shape(divisor));
  graph.add_op(id, Op::LOGISTIC, "", {}, {x}, {gate});
  graph.become(id, Op::MUL, "MulOptions", activation_attributes("NONE"), {numerator, gate});
  return true;
}

}  // namespace

constinit const Pass logistic_float_pass = {.name = "logistic",
                                            .summary = "n / (1 + exp(-x)) becomes n * LOGISTIC(x).",
                                            .safety = Safety::kRounding,
                                            .at = logistic_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// x divided by the root of the sum of its squares over the last axis becomes L2_NORMALIZATION: as a division by SQRT or
// a product with RSQRT, with a small number added or taken as a lower bound. Float32 only.
//
// The operator's own lower bound is 1e-6 for the root, so the results differ, beyond rounding, only for vectors that
// are shorter than that or than the bound in the model, which must be small itself.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr float kSmallRoot = 1e-6f, kSmallSquare = 1e-10f;

// Takes + small or max(., small) off.
TensorId without_bound(const Graph& graph, TensorId tensor, float small) {
  const OpId op = graph.producer(tensor);
  if (op == kNone || !graph.is_sound(op) || !has_no_activation(graph, op)) return tensor;
  if (!graph.is(op, Op::ADD) && !graph.is(op, Op::MAXIMUM)) return tensor;
  const auto parts = with_number(graph, op);
  return parts && parts->number >= 0 && parts->number <= small ? parts->x : tensor;
}

// x, if tensor is the sum of its squares, with a bound or without.
TensorId squares_of(const Graph& graph, TensorId tensor) {
  const TensorId sum = without_bound(graph, tensor, kSmallSquare);
  return square_root_of(graph, reduced_along_last(graph, sum, Op::SUM));
}

bool l2_norm_at(Graph& graph, OpId id) {
  const bool is_quotient = graph.is(id, Op::DIV);
  if ((!is_quotient && !graph.is(id, Op::MUL)) || !has_no_activation(graph, id)) return false;
  const TensorId y = graph.op(id).outputs[0];
  if (!is_float(graph, y)) return false;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    if (is_quotient && side == 1) break;
    const TensorId x = graph.op(id).inputs[side];
    TensorId norm = graph.op(id).inputs[1 - side];
    if (is_quotient) norm = without_bound(graph, norm, kSmallRoot);
    const OpId root = made_by(graph, norm, is_quotient ? Op::SQRT : Op::RSQRT);
    if (root == kNone || squares_of(graph, graph.op(root).inputs[0]) != x) continue;
    if (graph.shape(x) != graph.shape(y)) continue;
    graph.become(id, Op::L2_NORMALIZATION, "L2NormOptions", activation_attributes("NONE"), {x});
    return true;
  }
  return false;
}

}  // namespace

constinit const Pass l2_norm_float_pass = {
    .name = "l2-norm",
    .summary = "x / sqrt(sum(x * x)) over the last axis becomes L2_NORMALIZATION.",
    .safety = Safety::kRounding,
    .at = l2_norm_at};

}  // namespace reef::passes

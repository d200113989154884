// SPDX-License-Identifier: Apache-2.0
// Sums and products in one order of operands, so that patterns need to be known in one: constants second, and x in
// front of LOGISTIC(x) in x * sigmoid(x) (SiLU, for which TFLite has no operator). Exact.
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool operand_order_at(Graph& graph, OpId id) {
  const std::string& type = graph.type(id);
  if (type != Op::ADD && type != Op::MUL && type != Op::MAXIMUM && type != Op::MINIMUM) return false;
  const TensorId a = graph.op(id).inputs[0], b = graph.op(id).inputs[1];
  const OpId gate = type == Op::MUL ? made_by(graph, a, Op::LOGISTIC) : kNone;
  const bool is_gate_first = gate != kNone && graph.op(gate).inputs[0] == b;
  if (!is_gate_first && !(graph.is_constant(a) && !graph.is_constant(b))) return false;
  graph.set_inputs(id, {b, a});
  return true;
}

}  // namespace

constinit const Pass operand_order_float_pass = {
    .name = "operand-order", .summary = "Constants second; SiLU is `MUL(x, LOGISTIC(x))`.", .at = operand_order_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// BROADCAST_TO in front of arithmetic that broadcasts by itself is left out; behind arithmetic with a single number it
// comes to stand in front of what may. Exact.
#include <algorithm>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::string_view kBroadcasts[] = {"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"};

// f(broadcast(x), number) = broadcast(f(x, number)).
bool goes_behind(Graph& graph, OpId id) {
  const auto parts = with_number(graph, id);
  const OpId broadcast = parts ? made_by(graph, parts->x, "BROADCAST_TO") : kNone;
  if (broadcast == kNone || !graph.has_one_user(parts->x)) return false;
  const std::vector<TensorId> operands = graph.op(broadcast).inputs;
  if (graph.is_constant(operands[0]) || graph.shape(operands[0]).elements() >= graph.shape(parts->x).elements()) {
    return false;
  }
  const std::size_t side = graph.op(id).inputs[0] == parts->x ? 0 : 1;
  const std::vector<TensorId> results = graph.op(id).outputs;
  const TensorId number = graph.add_floats({parts->number}, {}, graph.tensor(results[0]).name + "/number");
  const TensorId small = graph.add_like(results[0], graph.shape(operands[0]));
  std::vector<TensorId> inputs = {operands[0], operands[0]};
  inputs[1 - side] = number;
  const ir::Operator op = graph.op(id);
  graph.add_op(id, op.type, op.options_type, op.attributes, std::move(inputs), {small});
  graph.become(id, "BROADCAST_TO", "BroadcastToOptions", {}, {small, operands[1]});
  return true;
}

bool at(Graph& graph, OpId id) {
  if (std::find(std::begin(kBroadcasts), std::end(kBroadcasts), graph.type(id)) == std::end(kBroadcasts)) return false;
  const std::vector<TensorId> inputs = graph.op(id).inputs;
  const ir::Shape& result = graph.shape(graph.op(id).outputs[0]);
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const OpId broadcast = made_by(graph, inputs[side], "BROADCAST_TO");
    if (broadcast == kNone || inputs[0] == inputs[1] || graph.shape(inputs[1 - side]) != result) continue;
    const TensorId x = graph.op(broadcast).inputs[0];
    if (graph.shape(x).rank() > result.rank()) continue;
    graph.set_input(id, side, x);
    return true;
  }
  return is_float(graph, graph.op(id).outputs[0]) && goes_behind(graph, id);
}

}  // namespace

extern const Pass broadcasts_float_pass;
constinit const Pass broadcasts_float_pass = {
    .name = "broadcasts",
    .summary = "BROADCAST_TO in front of arithmetic that broadcasts anyway is left out.",
    .at = at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// BROADCAST_TO in front of arithmetic that broadcasts by itself is left out. Exact.
#include <algorithm>

#include "simplify/pass.h"
#include "simplify/patterns.h"

namespace reef::simplify {
namespace {

constexpr std::string_view kBroadcasts[] = {"ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE"};

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
  return false;
}

}  // namespace

extern const Pass broadcasts_pass;
constinit const Pass broadcasts_pass = {
    .name = "broadcasts",
    .summary = "BROADCAST_TO in front of arithmetic that broadcasts anyway is left out.",
    .at = at};

}  // namespace reef::simplify

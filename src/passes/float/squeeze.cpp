// SPDX-License-Identifier: Apache-2.0
// SQUEEZE and EXPAND_DIMS become RESHAPE, so that the other passes know one operator for it.
#include "passes/float/pass.h"

namespace reef::simplify {
namespace {

bool at(Graph& graph, OpId op) {
  if (!graph.is(op, "SQUEEZE") && !graph.is(op, "EXPAND_DIMS")) return false;
  const TensorId x = graph.op(op).inputs[0];
  const ir::Shape shape = graph.shape(graph.op(op).outputs[0]);
  if (shape.elements() != graph.shape(x).elements()) return false;
  ir::Attributes attributes;
  attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
  graph.become(op, "RESHAPE", "ReshapeOptions", std::move(attributes),
               {x, graph.add_ints({shape.begin(), shape.end()})});
  return true;
}

}  // namespace

extern const Pass squeeze_pass;
constinit const Pass squeeze_pass = {.name = "squeeze", .summary = "SQUEEZE and EXPAND_DIMS become RESHAPE.", .at = at};

}  // namespace reef::simplify

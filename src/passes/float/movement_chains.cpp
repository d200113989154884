// SPDX-License-Identifier: Apache-2.0
// RESHAPE after RESHAPE, TRANSPOSE after TRANSPOSE: one does for both. A TRANSPOSE that keeps the elements in order is
// a RESHAPE. Exact.
#include "passes/float/layout_rules.h"
#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

void become_reshape(Graph& graph, OpId op, TensorId x) {
  const ir::Shape shape = graph.shape(graph.op(op).outputs[0]);
  ir::Attributes attributes;
  attributes.set("new_shape", std::vector<std::int64_t>(shape.begin(), shape.end()));
  graph.become(op, Op::RESHAPE, "ReshapeOptions", std::move(attributes),
               {x, graph.add_ints({shape.begin(), shape.end()})});
}

void become_transpose(Graph& graph, OpId op, TensorId x, const Layout& layout) {
  graph.become(op, Op::TRANSPOSE, "TransposeOptions", {}, {x, graph.add_ints({layout.begin(), layout.end()})});
}

bool is_per_axis(const Graph& graph, TensorId tensor) { return graph.tensor(tensor).quantization.is_per_axis(); }

// A RESHAPE of axes of size 1 and the TRANSPOSE behind it change places, so that chains end up as one of each.
bool transpose_first(Graph& graph, OpId op, const Layout& layout) {
  const TensorId between = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
  const OpId before = made_by(graph, between, Op::RESHAPE);
  if (before == kNone || !graph.has_one_user(between)) return false;
  const auto view = conversion_of(graph, before);
  if (!view || is_per_axis(graph, between)) return false;
  const TensorId x = graph.op(before).inputs[0];
  graph.remove(op);
  graph.convert(before, x, compose(*view, layout), y);
  return true;
}

bool movement_chains_at(Graph& graph, OpId op) {
  const bool is_reshape = graph.is(op, Op::RESHAPE), is_transpose = graph.is(op, Op::TRANSPOSE);
  if (!is_reshape && !is_transpose) return false;
  const TensorId x = graph.op(op).inputs[0], y = graph.op(op).outputs[0];
  if (is_reshape) {
    const OpId before = made_by(graph, x, Op::RESHAPE);
    if (before == kNone || is_per_axis(graph, x)) return false;
    become_reshape(graph, op, graph.op(before).inputs[0]);
    return true;
  }
  const auto layout = conversion_of(graph, op);
  if (!layout) return false;
  if (!moves_elements(*layout, graph.shape(x)) && !is_per_axis(graph, y)) {
    become_reshape(graph, op, x);
    return true;
  }
  if (const OpId before = made_by(graph, x, Op::TRANSPOSE); before != kNone) {
    const auto first = conversion_of(graph, before);
    if (!first) return false;
    become_transpose(graph, op, graph.op(before).inputs[0], compose(*first, *layout));
    return true;
  }
  return transpose_first(graph, op, *layout);
}

}  // namespace

constinit const Pass movement_chains_float_pass = {
    .name = "movement-chains",
    .summary = "RESHAPE of RESHAPE, TRANSPOSE of TRANSPOSE become one; a TRANSPOSE that keeps the order is a RESHAPE.",
    .at = movement_chains_at};

}  // namespace reef::passes

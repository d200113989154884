// SPDX-License-Identifier: Apache-2.0
// A GATHER whose indices are known and follow each other is a SLICE, which the chip runs, and a RESHAPE where a single
// index drops its axis or indices of higher rank give it a new form (PyTorch's newer exporter writes as_strided so). If
// it takes everything, the SLICE is left out. A SLICE of a SLICE is one. Exact. Last, because layouts know how to move
// a GATHER's axis.
#include <cstdint>
#include <vector>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool join_slices(Graph& graph, OpId id) {
  const auto begins = slice_begins(graph, id);
  if (!begins) return false;
  const OpId before = graph.producer(graph.op(id).inputs[0]);
  if (before == kNone || !graph.has_one_user(graph.op(id).inputs[0])) return false;
  auto first = slice_begins(graph, before);
  if (!first) return false;
  for (std::size_t axis = 0; axis < first->size(); ++axis) (*first)[axis] += (*begins)[axis];
  const TensorId x = graph.op(before).inputs[0];
  const ir::Shape sizes = graph.shape(graph.op(id).outputs[0]);
  graph.become(id, Op::SLICE, "SliceOptions", {}, slice_operands(graph, x, *first, sizes));
  return true;
}

bool gather_as_slice(Graph& graph, OpId id) {
  if (!graph.is(id, Op::GATHER) || graph.op(id).attributes.get_int("batch_dims") != 0) return false;
  const TensorId x = graph.op(id).inputs[0], result = graph.op(id).outputs[0];
  if (graph.is_constant(x)) return false;
  const ir::Shape from = graph.shape(x), to = graph.shape(result);
  const auto indices = graph.ints(graph.op(id).inputs[1]);
  if (!indices || indices->empty()) return false;
  for (std::size_t i = 1; i < indices->size(); ++i) {
    if ((*indices)[i] != (*indices)[i - 1] + 1) return false;
  }
  const std::int64_t given = graph.op(id).attributes.get_int("axis");
  const std::int64_t axis = given < 0 ? given + from.rank() : given;
  if (axis < 0 || axis >= from.rank()) return false;
  const std::int64_t begin = indices->front();
  if (begin < 0 || begin + static_cast<std::int64_t>(indices->size()) > from[static_cast<int>(axis)]) return false;
  std::vector<std::int64_t> begins(static_cast<std::size_t>(from.rank()), 0);
  begins[at(axis)] = begin;
  ir::Shape sizes = from;
  sizes[static_cast<int>(axis)] = static_cast<std::int32_t>(indices->size());
  if (sizes == to) {
    graph.become(id, Op::SLICE, "SliceOptions", {}, slice_operands(graph, x, begins, sizes));
    return true;
  }
  TensorId piece = x;
  if (sizes != from) {
    piece = graph.add_like(x, sizes);
    graph.add_op(id, Op::SLICE, "SliceOptions", {}, slice_operands(graph, x, begins, sizes), {piece});
  }
  graph.remove(id);
  graph.reshape(id, piece, to, result);
  return true;
}

bool picks_at(Graph& graph, OpId id) { return gather_as_slice(graph, id) || join_slices(graph, id); }

}  // namespace

constinit const Pass picks_float_pass = {
    .name = "picks",
    .summary =
        "A GATHER of known neighbours becomes a SLICE, which the Edge TPU runs (and a RESHAPE, where one index drops "
        "its axis); a SLICE of a SLICE is one.",
    .is_last = true,
    .at = picks_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// A GATHER whose indices are a grid that takes each element of a range once is a RESHAPE and a TRANSPOSE: PyTorch's
// exporters write unfold, and windows that do not overlap, as a GATHER with indices[i, j] = i + size * j for each axis.
// Exact. Before the passes about transpositions, which then see through it.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "passes/float/patterns.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// indices[i0, i1, ...] = begin + sum of i_d * steps[d].
struct Grid {
  std::int64_t begin = 0;
  std::vector<std::int64_t> sizes, steps;
};

std::optional<Grid> grid_of(const std::vector<std::int64_t>& indices, const ir::Shape& shape) {
  if (indices.empty() || static_cast<std::int64_t>(indices.size()) != shape.elements()) return std::nullopt;
  Grid grid;
  grid.begin = indices[0];
  std::int64_t behind = shape.elements();  // indices from one place of a dimension to the next
  for (const std::int32_t size : shape) {
    behind /= size;
    grid.sizes.push_back(size);
    grid.steps.push_back(size > 1 ? indices[at(behind)] - indices[0] : 0);
  }
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::int64_t expected = grid.begin, rest = static_cast<std::int64_t>(i);
    for (std::size_t d = grid.sizes.size(); d-- > 0;) {
      expected += rest % grid.sizes[d] * grid.steps[d];
      rest /= grid.sizes[d];
    }
    if (indices[i] != expected) return std::nullopt;
  }
  return grid;
}

// Dimensions of the grid from the largest step to the smallest, those of size 1 last; nothing where elements are left
// out or taken twice.
std::optional<std::vector<std::size_t>> order_of(const Grid& grid) {
  std::vector<std::size_t> order(grid.sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return grid.steps[a] > grid.steps[b]; });
  std::int64_t step = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    if (grid.sizes[order[k]] == 1) continue;
    if (grid.steps[order[k]] != step) return std::nullopt;
    step *= grid.sizes[order[k]];
  }
  return order;
}

bool index_grids_at(Graph& graph, OpId id) {
  if (!graph.is(id, Op::GATHER) || !graph.is_sound(id) || graph.op(id).attributes.get_int("batch_dims") != 0)
    return false;
  const TensorId x = graph.op(id).inputs[0], result = graph.op(id).outputs[0];
  const ir::Shape from = graph.shape(x), to = graph.shape(result), form = graph.shape(graph.op(id).inputs[1]);
  const std::int64_t given = graph.op(id).attributes.get_int("axis");
  const auto axis = static_cast<int>(given < 0 ? given + from.rank() : given);
  if (axis < 0 || axis >= from.rank() || form.rank() < 2 || form.elements() < 1 || graph.is_constant(x)) return false;
  if (to.rank() != from.rank() - 1 + form.rank() || !same_numbers(graph, x, result)) return false;
  const auto indices = graph.ints(graph.op(id).inputs[1]);
  const auto grid = indices ? grid_of(*indices, form) : std::nullopt;
  const auto order = grid ? order_of(*grid) : std::nullopt;
  // In ascending order it is a SLICE (`picks`).
  if (!order || std::is_sorted(indices->begin(), indices->end())) return false;
  if (grid->begin < 0 || grid->begin + form.elements() > from[axis]) return false;
  ir::Shape part = from, cut;
  part[axis] = static_cast<std::int32_t>(form.elements());
  std::vector<std::int32_t> permutation(static_cast<std::size_t>(to.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  for (int d = 0; d < axis; ++d) cut.push_back(from[d]);
  for (std::size_t k = 0; k < order->size(); ++k) {
    cut.push_back(static_cast<std::int32_t>(grid->sizes[(*order)[k]]));
    permutation[static_cast<std::size_t>(axis) + (*order)[k]] = axis + static_cast<std::int32_t>(k);
  }
  for (int d = axis + 1; d < from.rank(); ++d) cut.push_back(from[d]);
  TensorId range = x;
  if (part != from) {
    std::vector<std::int64_t> begins(static_cast<std::size_t>(from.rank()), 0);
    begins[at(axis)] = grid->begin;
    range = graph.add_like(x, part);
    graph.add_op(id, Op::SLICE, "SliceOptions", {}, slice_operands(graph, x, begins, part), {range});
  }
  const TensorId apart = graph.reshape(id, range, cut);
  graph.become(id, Op::TRANSPOSE, "TransposeOptions", {}, {apart, graph.add_ints(std::move(permutation))});
  return true;
}

}  // namespace

constinit const Pass index_grids_float_pass = {
    .name = "index-grids",
    .summary =
        "A GATHER whose indices are a grid that takes each element of a range once (unfold of PyTorch, windows that do "
        "not overlap) becomes RESHAPE and TRANSPOSE.",
    .at = index_grids_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
#include "prune/axes.h"

#include <algorithm>

#include "prune/axis_rules.h"

namespace reef::prune {

Axes::Axes(const ir::Model& model) {
  const ir::Subgraph& graph = model.subgraphs[0];
  first_.resize(graph.tensors.size());
  std::int32_t next = 0;
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    const ir::Shape& shape = graph.tensors[t].shape;
    if (!shape.is_usable() || !shape.checked_elements()) continue;
    first_[t].known = true;
    for (const std::int32_t size : shape) {
      first_[t].axes.push_back(next);
      first_[t].sizes.push_back(size);
      next += size;
    }
  }
  parents_.resize(static_cast<std::size_t>(next));
  for (std::int32_t i = 0; i < next; ++i) parents_[at(i)] = i;
  fixed_.assign(parents_.size(), false);
}

std::int32_t Axes::root(std::int32_t node) const {
  while (parents_[at(node)] != node) {
    std::int32_t& parent = parents_[at(node)];
    parent = parents_[at(parent)];
    node = parent;
  }
  return node;
}

// The smaller number becomes the root, so that the result does not depend on the order of joins.
void Axes::join_nodes(std::int32_t a, std::int32_t b) {
  a = root(a), b = root(b);
  if (a == b) return;
  if (b < a) std::swap(a, b);
  parents_[at(b)] = a;
  if (fixed_[at(b)]) fixed_[at(a)] = true;
}

void Axes::join(std::int32_t tensor_a, int axis_a, std::int32_t a, std::int32_t tensor_b, int axis_b, std::int32_t b) {
  join_nodes(node(tensor_a, axis_a, a), node(tensor_b, axis_b, b));
}

void Axes::join_axes(std::int32_t tensor_a, int axis_a, std::int32_t tensor_b, int axis_b) {
  const std::int32_t count = std::min(size(tensor_a, axis_a), size(tensor_b, axis_b));
  for (std::int32_t i = 0; i < count; ++i) join(tensor_a, axis_a, i, tensor_b, axis_b, i);
}

void Axes::fix(std::int32_t tensor, int axis, std::int32_t i) { fixed_[at(root(node(tensor, axis, i)))] = true; }

void Axes::fix_axis(std::int32_t tensor, int axis) {
  for (std::int32_t i = 0; i < size(tensor, axis); ++i) fix(tensor, axis, i);
}

void Axes::fix_all(std::int32_t tensor) {
  if (!has(tensor)) return;
  for (int axis = 0; axis < rank(tensor); ++axis) fix_axis(tensor, axis);
}

bool Axes::is_axis_fixed(std::int32_t tensor, int axis) const {
  for (std::int32_t i = 0; i < size(tensor, axis); ++i) {
    if (!is_fixed(unit(tensor, axis, i))) return false;
  }
  return true;
}

int Axes::rank(std::int32_t tensor) const { return static_cast<int>(first_[at(tensor)].axes.size()); }

std::int32_t Axes::size(std::int32_t tensor, int axis) const { return first_[at(tensor)].sizes[at(axis)]; }

Result<Axes> Axes::find(const ir::Model& model, HeadUnits heads) {
  REEF_REQUIRE(!model.subgraphs.empty(), "the model has no graph");
  Axes axes(model);
  apply_axis_rules(model, heads, axes);
  return axes;
}

}  // namespace reef::prune

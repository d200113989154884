// SPDX-License-Identifier: Apache-2.0
// Which indices of which axes of which tensors can only be removed together.
//
// Removing channel 5 of a convolution removes index 5 of its weights' and bias' first axis, of its result, of all that
// is computed from it element by element, and of the input axis of every layer that reads it; behind a residual ADD
// also of the other operand and so on. `Axes` holds one node for each (tensor, axis, index) of a model's first subgraph
// and joins the nodes that each operator ties together (axis_rules.def). What is left joined is a unit: it can be
// removed from all its places at once and the model stays sound. A unit is fixed if an operator needs it whole (the
// model's inputs and outputs, pixels, what a normalization averages over, anything an operator without a rule reads).
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "ir/model.h"

namespace reef::prune {

// Where a reshape cuts one axis into two, as attention does with heads, only one of the parts can carry units.
enum class HeadUnits : std::uint8_t {
  kWithinHeads,  // the same number is taken from every head
  kWholeHeads,   // heads are removed whole
};

class Axes {
 public:
  // `model` must be verified, with settled shapes (ops/settled_shapes.h).
  static Result<Axes> find(const ir::Model& model, HeadUnits heads);

  // The unit that index `i` of an axis belongs to.
  std::int32_t unit(std::int32_t tensor, int axis, std::int32_t i) const { return root(node(tensor, axis, i)); }
  bool is_fixed(std::int32_t unit) const { return fixed_[at(unit)]; }
  // Units are numbers below this; not every number is one.
  std::int32_t limit() const { return static_cast<std::int32_t>(parents_.size()); }

  // For the rules. Nodes of tensors whose sizes are not known do not exist.
  bool has(std::int32_t tensor) const { return tensor >= 0 && first_[at(tensor)].known; }
  void join(std::int32_t tensor_a, int axis_a, std::int32_t a, std::int32_t tensor_b, int axis_b, std::int32_t b);
  // Joins two axes of equal size, index by index.
  void join_axes(std::int32_t tensor_a, int axis_a, std::int32_t tensor_b, int axis_b);
  void fix(std::int32_t tensor, int axis, std::int32_t i);
  void fix_axis(std::int32_t tensor, int axis);
  void fix_all(std::int32_t tensor);
  // Every index of the axis is fixed.
  bool is_axis_fixed(std::int32_t tensor, int axis) const;
  int rank(std::int32_t tensor) const;
  std::int32_t size(std::int32_t tensor, int axis) const;

 private:
  struct First {
    bool known = false;
    std::vector<std::int32_t> axes;  // node of index 0
    std::vector<std::int32_t> sizes;
  };
  explicit Axes(const ir::Model& model);
  std::int32_t node(std::int32_t tensor, int axis, std::int32_t i) const {
    return first_[at(tensor)].axes[at(axis)] + i;
  }
  std::int32_t root(std::int32_t node) const;
  void join_nodes(std::int32_t a, std::int32_t b);

  std::vector<First> first_;  // by tensor
  mutable std::vector<std::int32_t> parents_;
  std::vector<bool> fixed_;
};

}  // namespace reef::prune

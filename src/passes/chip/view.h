// SPDX-License-Identifier: Apache-2.0
// What chains of RESHAPE and TRANSPOSE do, as arithmetic on strides.
//
// Such a chain shows the elements of its source in another order. Each dimension of the result runs over one or more
// factors: a size and the distance, in elements of the source, between neighbours. Factors that follow each other
// without a gap merge into one. What is left when all have merged says what the chain does, whatever its operators.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/shape.h"
#include "passes/chip/chip_graph.h"

namespace reef::passes {

struct Factor {
  std::int64_t size = 1;
  std::int64_t stride = 0;  // in elements of the source
  friend bool operator==(const Factor&, const Factor&) = default;
};

class View {
 public:
  // The source as it is. It must have elements.
  explicit View(const ir::Shape& source);

  // Each false: not expressible (the view is then useless).
  bool reshape(const ir::Shape& shape);
  bool transpose(std::span<const std::int64_t> permutation);
  // One operator of the chain: RESHAPE, TRANSPOSE, SQUEEZE, EXPAND_DIMS, DEPTH_TO_SPACE, SPACE_TO_DEPTH.
  bool apply(const ChipGraph& edit, std::int32_t op);

  // Factors of each dimension, merged, outermost first; none for a dimension of size 1.
  const std::vector<std::vector<Factor>>& dims() const { return dims_; }
  ir::Shape shape() const;
  // Of all dimensions together, merged.
  std::vector<Factor> factors() const;
  // The source's elements in order: at most another shape.
  bool is_reshape() const { return factors().size() <= 1; }

 private:
  std::vector<std::vector<Factor>> dims_;
};

// Whether the operator only shows its input 0 in another order or shape, and how is constant.
bool is_view_op(const ChipGraph& edit, std::int32_t op);

// A TRANSPOSE's constant permutation, checked; empty: none.
std::vector<std::int64_t> permutation_of(const ChipGraph& edit, std::int32_t op);

// The view as RESHAPE to `source`, then TRANSPOSE by `permutation`. False if a dimension has more than one factor.
struct ReshapeTranspose {
  ir::Shape source;
  std::vector<int> permutation;
  bool is_identity() const;
};
bool as_reshape_transpose(const View& view, ReshapeTranspose& result);

}  // namespace reef::passes

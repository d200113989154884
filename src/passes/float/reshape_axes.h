// SPDX-License-Identifier: Apache-2.0
// How a RESHAPE maps the axes of a tensor: both shapes as runs of common factors ("fine axes").
//
// [2, 12, 5] -> [2, 3, 4, 5] has the fine axes 2, 3, 4, 5: the first shape's second axis is the run 3, 4. With them a
// layout of one side says which layout the other side has, if any. [4, 6] -> [3, 8] has no common factors in order;
// such axes are glued: they stay side by side and in order, and together are one fine axis.
#pragma once

#include <optional>
#include <vector>

#include "graph/layout.h"
#include "ir/shape.h"

namespace reef::passes {

using graph::Layout;

// Fine axes [first, first + count) make up an axis; count is 0 for an axis of size 1.
struct Run {
  int first = 0;
  int count = 0;
};

struct ReshapeAxes {
  std::vector<std::int64_t> sizes;   // of the fine axes, outermost first; none is 1
  std::vector<Run> from, to;         // of each axis
  std::vector<bool> is_part_of_one;  // by fine axis: several glued axes share it, so that it cannot be told apart
};

// Both shapes must have as many elements, at least one.
ReshapeAxes reshape_axes(const ir::Shape& from, const ir::Shape& to);

// The order of fine axes that a layout of one side gives; nullopt: it tears glued axes apart.
std::optional<std::vector<int>> fine_order(const ReshapeAxes& axes, const std::vector<Run>& side, const Layout& layout);

// The layout of the other side that has the same order of fine axes; nullopt: there is none. Axes of size 1 go along
// with the axis before them.
std::optional<Layout> matching_layout(const ReshapeAxes& axes, const std::vector<Run>& side,
                                      const std::vector<int>& order);

}  // namespace reef::passes

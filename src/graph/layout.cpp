// SPDX-License-Identifier: Apache-2.0
#include "graph/layout.h"

#include <algorithm>
#include <numeric>

#include "base/at.h"

namespace reef::graph {
namespace {

constexpr std::int64_t kTransposeCost = 64, kReshapeCost = 16;

// The axes larger than 1, in the layout's order.
std::vector<int> large_axes(const Layout& layout, const ir::Shape& shape) {
  std::vector<int> result;
  for (const int axis : layout) {
    if (axis >= 0 && shape[axis] != 1) result.push_back(axis);
  }
  return result;
}

}  // namespace

Layout identity_layout(int rank) {
  Layout result(static_cast<std::size_t>(rank));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

ir::Shape laid_out(const ir::Shape& shape, const Layout& layout) {
  ir::Shape result;
  for (const int axis : layout) result.push_back(axis < 0 ? 1 : shape[axis]);
  return result;
}

Layout inverse(const Layout& layout, int rank) {
  Layout result;
  for (int axis = 0; axis < rank; ++axis) result.push_back(position_of(axis, layout));
  return result;
}

Layout compose(const Layout& first, const Layout& second) {
  Layout result;
  for (const int axis : second) result.push_back(axis < 0 ? kNewAxis : first[at(axis)]);
  return result;
}

bool is_same(const Layout& a, const Layout& b, const ir::Shape& shape) {
  return laid_out(shape, a) == laid_out(shape, b) && large_axes(a, shape) == large_axes(b, shape);
}

bool is_identity(const Layout& layout, const ir::Shape& shape) {
  return is_same(layout, identity_layout(shape.rank()), shape);
}

bool moves_elements(const Layout& layout, const ir::Shape& shape) {
  const std::vector<int> axes = large_axes(layout, shape);
  return !std::is_sorted(axes.begin(), axes.end());
}

bool fits_shape(const Layout& layout, const ir::Shape& shape) {
  std::vector<bool> seen(static_cast<std::size_t>(shape.rank()), false);
  for (const int axis : layout) {
    if (axis >= shape.rank() || axis < kNewAxis) return false;
    if (axis < 0) continue;
    if (seen[at(axis)]) return false;
    seen[at(axis)] = true;
  }
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != 1 && !seen[at(axis)]) return false;
  }
  return true;
}

int position_of(int axis, const Layout& layout) {
  const auto found = std::find(layout.begin(), layout.end(), axis);
  return found == layout.end() ? kNewAxis : static_cast<int>(found - layout.begin());
}

std::int64_t conversion_cost(const Layout& layout, const ir::Shape& shape) {
  if (is_identity(layout, shape)) return 0;
  if (!moves_elements(layout, shape)) return kReshapeCost;
  const Layout all = identity_layout(shape.rank());
  const bool is_permutation = std::is_permutation(layout.begin(), layout.end(), all.begin(), all.end());
  return shape.elements() + kTransposeCost + (is_permutation ? 0 : kReshapeCost);
}

}  // namespace reef::graph

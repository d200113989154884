// SPDX-License-Identifier: Apache-2.0
#include "passes/float/reshape_axes.h"

#include <algorithm>

#include "base/at.h"

namespace reef::passes {
namespace {

// Boundaries between an axis and the next, as products of sizes from the outside.
std::vector<std::int64_t> boundaries(const ir::Shape& shape, int begin, int end) {
  std::vector<std::int64_t> result;
  std::int64_t product = 1;
  for (int i = begin; i < end; ++i) {
    product *= shape[i];
    if (shape[i] != 1) result.push_back(product);
  }
  return result;
}

// Factors that both lists of boundaries are made of; empty: there are none.
std::vector<std::int64_t> common_factors(std::vector<std::int64_t> a, const std::vector<std::int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  a.erase(std::unique(a.begin(), a.end()), a.end());
  std::vector<std::int64_t> factors;
  std::int64_t before = 1;
  for (const std::int64_t boundary : a) {
    if (boundary % before != 0) return {};
    factors.push_back(boundary / before);
    before = boundary;
  }
  return factors;
}

// Axes [begin, end) take the fine axes from `first` on.
void assign(const ir::Shape& shape, int begin, int end, const ReshapeAxes& axes, int first, std::vector<Run>& runs) {
  int at = first;
  for (int i = begin; i < end; ++i) {
    Run run{at, 0};
    for (std::int64_t size = 1; size < shape[i]; ++run.count) {
      size *= axes.sizes[reef::at(at)];
      ++at;
    }
    runs.push_back(run);
  }
}

// All axes larger than 1 are parts of one fine axis.
void glue(const ir::Shape& shape, int begin, int end, int fine, std::vector<Run>& runs) {
  for (int i = begin; i < end; ++i) runs.push_back({fine, shape[i] == 1 ? 0 : 1});
}

}  // namespace

ReshapeAxes reshape_axes(const ir::Shape& from, const ir::Shape& to) {
  ReshapeAxes axes;
  int i = 0, j = 0;
  while (i < from.rank() || j < to.rank()) {
    // The shortest stretches of both that have equal products.
    const int begin_i = i, begin_j = j;
    std::int64_t a = 1, b = 1;
    if (i < from.rank()) a *= from[i++];
    while (a != b) {
      if (a < b) {
        a *= from[i++];
      } else {
        b *= to[j++];
      }
    }
    if (i == from.rank() && a == b) {
      while (j < to.rank() && to[j] == 1) ++j;
    }
    const std::vector<std::int64_t> factors = common_factors(boundaries(from, begin_i, i), boundaries(to, begin_j, j));
    const int first = static_cast<int>(axes.sizes.size());
    if (!factors.empty() || a == 1) {
      axes.sizes.insert(axes.sizes.end(), factors.begin(), factors.end());
      axes.is_part_of_one.resize(axes.sizes.size(), false);
      assign(from, begin_i, i, axes, first, axes.from);
      assign(to, begin_j, j, axes, first, axes.to);
    } else {
      axes.sizes.push_back(a);
      axes.is_part_of_one.push_back(true);
      glue(from, begin_i, i, first, axes.from);
      glue(to, begin_j, j, first, axes.to);
    }
  }
  return axes;
}

std::optional<std::vector<int>> fine_order(const ReshapeAxes& axes, const std::vector<Run>& side,
                                           const Layout& layout) {
  std::vector<int> order;
  int last_glued = -1;  // the axis before, if it is a part of a fine axis
  for (const int axis : layout) {
    if (axis < 0) continue;
    const Run run = side[reef::at(axis)];
    if (run.count == 0) continue;
    if (!axes.is_part_of_one[reef::at(run.first)]) {
      for (int k = 0; k < run.count; ++k) order.push_back(run.first + k);
      last_glued = -1;
      continue;
    }
    if (order.empty() || order.back() != run.first) {
      // The first of its parts must come first.
      for (int other = 0; other < axis; ++other) {
        const Run& before = side[reef::at(other)];
        if (before.count > 0 && before.first == run.first) return std::nullopt;
      }
      order.push_back(run.first);
    } else if (last_glued < 0 || axis < last_glued) {
      return std::nullopt;
    }
    last_glued = axis;
  }
  // Parts that were torn apart come up twice.
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
  return order;
}

std::optional<Layout> matching_layout(const ReshapeAxes& axes, const std::vector<Run>& side,
                                      const std::vector<int>& order) {
  std::vector<std::vector<int>> followers(side.size() + 1);  // axes of size 1, by the axis before them + 1
  std::size_t leader = 0;
  for (std::size_t axis = 0; axis < side.size(); ++axis) {
    if (side[axis].count == 0) {
      followers[leader].push_back(static_cast<int>(axis));
    } else {
      leader = axis + 1;
    }
  }
  Layout layout = followers[0];
  for (std::size_t at = 0; at < order.size();) {
    const int fine = order[at];
    const bool glued = axes.is_part_of_one[reef::at(fine)];
    bool found = false;
    for (std::size_t axis = 0; axis < side.size(); ++axis) {
      const Run run = side[axis];
      if (run.count == 0 || run.first != fine) continue;
      for (int k = 1; k < run.count; ++k) {
        if (at + static_cast<std::size_t>(k) >= order.size() || order[at + static_cast<std::size_t>(k)] != fine + k) {
          return std::nullopt;
        }
      }
      layout.push_back(static_cast<int>(axis));
      layout.insert(layout.end(), followers[axis + 1].begin(), followers[axis + 1].end());
      if (!glued) at += static_cast<std::size_t>(run.count);
      found = true;
      if (!glued) break;
    }
    if (!found) return std::nullopt;
    if (glued) ++at;
  }
  return layout;
}

}  // namespace reef::passes

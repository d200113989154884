// SPDX-License-Identifier: Apache-2.0
#include "lower/element_maps.h"

#include <limits>

namespace reef::lower {

namespace {

// For each index of a dimension: how many from it on are one element apart, or all padding.
std::vector<std::int64_t> runs_of(const std::vector<std::int64_t>& offsets) {
  std::vector<std::int64_t> runs(offsets.size(), 1);
  for (std::size_t i = offsets.size(); i-- > 1;) {
    const bool both_padding = offsets[i - 1] == kPadding && offsets[i] == kPadding;
    const bool follows = offsets[i - 1] != kPadding && offsets[i] == offsets[i - 1] + 1;
    if (both_padding || follows) runs[i - 1] = runs[i] + 1;
  }
  return runs;
}

}  // namespace

ElementMap by_axes(AxisOffsets axes) {
  std::vector<std::int64_t> runs = runs_of(axes.offsets.back());
  return [axes = std::move(axes), runs = std::move(runs)](std::int64_t element) {
    ElementSource source{0, 0, runs[at(element % static_cast<std::int64_t>(runs.size()))]};
    for (std::size_t d = axes.offsets.size(); d-- > 0;) {
      const auto size = static_cast<std::int64_t>(axes.offsets[d].size());
      const std::int64_t offset = axes.offsets[d][at(element % size)];
      if (offset == kPadding) return ElementSource{};
      source.element += offset;
      element /= size;
    }
    return source;
  };
}

ElementMap in_order() {
  return [](std::int64_t element) { return ElementSource{0, element, std::numeric_limits<std::int64_t>::max()}; };
}

std::vector<std::int64_t> element_strides(const ir::Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()), 1);
  for (int d = shape.rank() - 2; d >= 0; --d) {
    strides[at(d)] = strides[static_cast<std::size_t>(d) + 1] * shape[d + 1];
  }
  return strides;
}

}  // namespace reef::lower

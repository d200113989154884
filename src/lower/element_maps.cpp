// SPDX-License-Identifier: Apache-2.0
#include "lower/element_maps.h"

namespace reef::lower {

ElementMap by_axes(AxisOffsets axes) {
  return [axes = std::move(axes)](std::int64_t element) {
    ElementSource source{0, 0};
    for (std::size_t d = axes.offsets.size(); d-- > 0;) {
      const auto size = static_cast<std::int64_t>(axes.offsets[d].size());
      const std::int64_t offset = axes.offsets[d][static_cast<std::size_t>(element % size)];
      if (offset == kPadding) return ElementSource{};
      source.element += offset;
      element /= size;
    }
    return source;
  };
}

ElementMap in_order() {
  return [](std::int64_t element) { return ElementSource{0, element}; };
}

std::vector<std::int64_t> element_strides(const ir::Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()), 1);
  for (int d = shape.rank() - 2; d >= 0; --d) {
    strides[static_cast<std::size_t>(d)] = strides[static_cast<std::size_t>(d) + 1] * shape[d + 1];
  }
  return strides;
}

}  // namespace reef::lower

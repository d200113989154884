// SPDX-License-Identifier: Apache-2.0
// Which element of an operand each element of a result is, for operators that only move elements (rearrange.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/model.h"
#include "lower/rearrange.h"

namespace reef::lower {

// The result dimension by dimension: index i along dimension d stands for offsets[d][i] elements of the operand; these
// add up. kPadding: the zero point.
inline constexpr std::int64_t kPadding = -1;
struct AxisOffsets {
  std::vector<std::vector<std::int64_t>> offsets;
};
ElementMap by_axes(AxisOffsets axes);
// Elements in their own order.
ElementMap in_order();

// Elements from one index of a dimension to the next.
std::vector<std::int64_t> element_strides(const ir::Shape& shape);

}  // namespace reef::lower

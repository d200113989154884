// SPDX-License-Identifier: Apache-2.0
// NumPy-style broadcasting for element-wise ops with N operands, of any rank.
//
// A plan is made once, in prepare: neighbouring dimensions along which every operand either moves or stands still are
// merged, so that operands of equal shape become a single row, and a bias or a scalar a short list of rows. Along a row
// each operand advances by 1 element or stays where it is; nothing is divided per element.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/shape.h"

namespace reef::ops {

// Where each operand stands, in elements from its beginning.
template <std::size_t N>
using Positions = std::array<std::int64_t, N>;

template <std::size_t N>
class BroadcastPlan {
 public:
  // Every shape in `operands` must broadcast to `output`.
  BroadcastPlan(const ir::Shape& output, const std::array<const ir::Shape*, N>& operands);

  // Elements of the output.
  std::int64_t elements() const { return elements_; }
  // Advance of operand `i` along a row: 1 or 0.
  std::int64_t step(std::size_t i) const { return levels_[0].stride[i]; }

  // Covers output elements [begin, end) with consecutive rows: row(first_output_element, operand_positions, count).
  template <typename Row>
  void for_each_row(std::int64_t begin, std::int64_t end, const Row& row) const;

 private:
  struct Level {
    std::int64_t size = 1;
    Positions<N> stride = {};
  };

  std::int64_t elements_ = 0;
  std::vector<Level> levels_;  // innermost first; never empty
};

template <std::size_t N>
BroadcastPlan<N>::BroadcastPlan(const ir::Shape& output, const std::array<const ir::Shape*, N>& operands)
    : elements_(output.elements()) {
  std::array<bool, N> moving_before = {};
  Positions<N> operand_elements;
  operand_elements.fill(1);
  for (int i = 0; i < output.rank(); ++i) {
    const std::int64_t size = output.last(i);
    if (size == 1) continue;
    std::array<bool, N> moving;
    for (std::size_t k = 0; k < N; ++k) moving[k] = i < operands[k]->rank() && operands[k]->last(i) == size;
    if (!levels_.empty() && moving == moving_before) {
      levels_.back().size *= size;
    } else {
      Level level{size, {}};
      for (std::size_t k = 0; k < N; ++k) level.stride[k] = moving[k] ? operand_elements[k] : 0;
      levels_.push_back(level);
      moving_before = moving;
    }
    for (std::size_t k = 0; k < N; ++k) operand_elements[k] *= moving[k] ? size : 1;
  }
  if (levels_.empty()) levels_.push_back(Level{});
}

template <std::size_t N>
template <typename Row>
void BroadcastPlan<N>::for_each_row(std::int64_t begin, std::int64_t end, const Row& row) const {
  if (begin >= end) return;
  Positions<N> at = {};
  if (levels_.size() == 1) {
    for (std::size_t k = 0; k < N; ++k) at[k] = begin * levels_[0].stride[k];
    return row(begin, at, end - begin);
  }
  std::vector<std::int64_t> index(levels_.size(), 0);
  std::int64_t rest = begin;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    index[l] = rest % levels_[l].size;
    rest /= levels_[l].size;
    for (std::size_t k = 0; k < N; ++k) at[k] += index[l] * levels_[l].stride[k];
  }
  for (std::int64_t position = begin; position < end;) {
    const std::int64_t count = std::min(levels_[0].size - index[0], end - position);
    row(position, at, count);
    position += count;
    if (position == end) return;
    // A row ended before the range did: back to its beginning, and on to the next.
    for (std::size_t k = 0; k < N; ++k) at[k] -= index[0] * levels_[0].stride[k];
    index[0] = 0;
    for (std::size_t l = 1; l < levels_.size(); ++l) {
      for (std::size_t k = 0; k < N; ++k) at[k] += levels_[l].stride[k];
      if (++index[l] < levels_[l].size) break;
      for (std::size_t k = 0; k < N; ++k) at[k] -= index[l] * levels_[l].stride[k];
      index[l] = 0;
    }
  }
}

}  // namespace reef::ops

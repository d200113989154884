// SPDX-License-Identifier: Apache-2.0
// NumPy-style broadcasting for element-wise ops with N operands, of any rank.
//
// A plan is made once, in prepare: neighbouring dimensions along which every operand either moves or stands still are
// merged, so that operands of equal shape become a single row, and a bias or a scalar a short list of rows. Along a row
// each operand advances by 1 element or stays where it is; nothing is divided per element.
//
// Rows can be short: a picture less a mean per channel has rows of 3. for_each_run hides that from whoever computes:
// operands that are not laid out like the output are copied into short buffers that are, so that all runs are long.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "base/at.h"
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

  // The same with long runs: run(first_output_element, pointer to each operand..., steps of all, count).
  template <typename... T, typename Run>
  void for_each_run(std::int64_t begin, std::int64_t end, const std::tuple<const T*...>& operands,
                    const Run& run) const;

 private:
  static constexpr std::int64_t kShortRow = 256, kRun = 1024;  // elements
  // Rows that are too short where some operand has another row, or another number, for each of them.
  static constexpr std::int64_t kShortGatheredRow = 32;
  // An operand, of whose elements a run gets those that it needs one after the other.
  template <typename T>
  class RunOperand;
  struct Level {
    std::int64_t size = 1;
    Positions<N> stride = {};
  };

  // Whether operand `i` has an element of its own for each of the output's.
  bool is_dense(std::size_t i) const {
    return std::all_of(levels_.begin(), levels_.end(), [i](const Level& level) { return level.stride[i] != 0; });
  }
  // Whether no operand must be copied anew for every run.
  bool are_cheap_to_repeat() const {
    for (std::size_t i = 0; i < N; ++i) {
      if (!is_dense(i) && !is_repeated_row(i)) return false;
    }
    return true;
  }
  // Whether it is one row that is repeated.
  bool is_repeated_row(std::size_t i) const {
    return std::all_of(levels_.begin() + 1, levels_.end(), [i](const Level& level) { return level.stride[i] == 0; });
  }

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

template <std::size_t N>
template <typename T>
class BroadcastPlan<N>::RunOperand {
 public:
  struct Source {
    const BroadcastPlan& plan;
    std::size_t index;
    const T* all;
  };
  RunOperand(const Source& source)
      : plan_(source.plan), index_(source.index), all_(source.all), is_dense_(plan_.is_dense(index_)) {
    // One row again and again: a buffer with as many as a run needs, wherever in a row it begins.
    period_ = !is_dense_ && plan_.is_repeated_row(index_) ? plan_.levels_[0].size : 0;
    if (period_ == 0) return;
    for (std::int64_t i = 0; i < period_; ++i) buffer_[reef::at(i)] = all_[i * plan_.step(index_)];
    for (std::size_t filled = static_cast<std::size_t>(period_); filled < buffer_.size(); filled *= 2) {
      std::copy_n(buffer_.data(), std::min(filled, buffer_.size() - filled), buffer_.data() + filled);
    }
  }

  const T* at(std::int64_t begin, std::int64_t count) {
    if (is_dense_) return all_ + begin;
    if (period_ != 0) return buffer_.data() + begin % period_;
    T* to = buffer_.data();
    const std::int64_t step = plan_.step(index_);
    plan_.for_each_row(begin, begin + count, [&](std::int64_t, const Positions<N>& position, std::int64_t size) {
      const T* from = all_ + position[index_];
      for (std::int64_t i = 0; i < size; ++i) to[i] = from[i * step];
      to += size;
    });
    return buffer_.data();
  }

 private:
  const BroadcastPlan& plan_;
  std::size_t index_;
  const T* all_;
  bool is_dense_;
  std::int64_t period_ = 0;  // 0: it has none
  std::array<T, kRun + kShortRow> buffer_;
};

template <std::size_t N>
template <typename... T, typename Run>
void BroadcastPlan<N>::for_each_run(std::int64_t begin, std::int64_t end, const std::tuple<const T*...>& operands,
                                    const Run& run) const {
  static_assert(sizeof...(T) == N);
  const bool has_long_rows = levels_.size() == 1 || levels_[0].size >= kShortRow ||
                             (levels_[0].size >= kShortGatheredRow && !are_cheap_to_repeat());
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    if (has_long_rows) {
      for_each_row(begin, end, [&](std::int64_t first, const Positions<N>& at, std::int64_t count) {
        run(first, std::get<I>(operands) + at[I]..., Positions<N>{step(I)...}, count);
      });
      return;
    }
    std::tuple<RunOperand<T>...> in_runs(typename RunOperand<T>::Source{*this, I, std::get<I>(operands)}...);
    Positions<N> steps;
    steps.fill(1);
    for (std::int64_t first = begin; first < end; first += kRun) {
      const std::int64_t count = std::min(kRun, end - first);
      run(first, std::get<I>(in_runs).at(first, count)..., steps, count);
    }
  }
  (std::index_sequence_for<T...>());
}

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// A queue that keeps its memory: std::deque asks for some with every few elements that pass through it, which took a
// quarter of an audit's time.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace reef::audit {

template <typename T>
class Queue {
 public:
  bool empty() const { return first_ == items_.size(); }
  std::size_t size() const { return items_.size() - first_; }
  T& front() { return items_[first_]; }
  const T& front() const { return items_[first_]; }
  T& back() { return items_.back(); }
  const T& back() const { return items_.back(); }
  T& operator[](std::size_t i) { return items_[first_ + i]; }
  const T& operator[](std::size_t i) const { return items_[first_ + i]; }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin() + static_cast<std::ptrdiff_t>(first_); }
  auto end() const { return items_.end(); }
  void push_back(T item) { items_.push_back(std::move(item)); }
  // Precondition: it is not empty.
  void pop_front() {
    items_[first_] = T{};  // what it holds is given up now
    if (++first_ == items_.size()) return clear();
    constexpr std::size_t kMostWaste = 64;
    if (first_ < kMostWaste || first_ * 2 < items_.size()) return;
    items_.erase(items_.begin(), begin());
    first_ = 0;
  }
  void clear() {
    items_.clear();
    first_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t first_ = 0;  // of those that have not been taken
};

}  // namespace reef::audit

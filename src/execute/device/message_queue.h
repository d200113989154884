// SPDX-License-Identifier: Apache-2.0
// Queues between units: first in, first out, without an allocation per element, and lines that several tiles share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "execute/device/memory.h"

namespace reef::device {

// A ring buffer that grows to what it had to hold at most.
template <typename T>
class MessageQueue {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const T& front() const { return items_[first_]; }
  // Element `index` from the front.
  const T& operator[](std::size_t index) const { return items_[(first_ + index) & (items_.size() - 1)]; }
  void push_back(const T& item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_++) & (items_.size() - 1)] = item;
  }
  void pop_front(std::size_t count = 1) {
    first_ = (first_ + count) & (items_.size() - 1);
    size_ -= count;
  }
  void clear() { first_ = size_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    items_.swap(larger);
    first_ = 0;
  }

  std::vector<T> items_;  // a power of two of them
  std::size_t first_ = 0, size_ = 0;
};

// A line on the ring, once for all who receive it.
struct RingLine {
  Line line;
  int receivers = 0;  // that have not taken it yet
};

// Lines are used again when all receivers have taken them, so that a device that runs for long does not grow.
class RingLinePool {
 public:
  // Its contents are whatever they were.
  RingLine* take(int receivers) {
    if (free_.empty()) free_.push_back(&lines_.emplace_back());
    RingLine* line = free_.back();
    free_.pop_back();
    line->receivers = receivers;
    return line;
  }
  void leave(RingLine* line) {
    if (--line->receivers == 0) free_.push_back(line);
  }

 private:
  std::deque<RingLine> lines_;  // stay where they are
  std::vector<RingLine*> free_;
};

}  // namespace reef::device

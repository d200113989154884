// SPDX-License-Identifier: Apache-2.0
// Memory that tensors of one interpreter take, counted against its own limit and against the command's Budget, and an
// aligned block that returns its share when it dies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "base/budget.h"
#include "base/status.h"
#include "execute/cpu/arena_planner.h"

namespace reef::cpu {

class MemoryBudget {
 public:
  explicit MemoryBudget(std::int64_t limit_bytes, Budget budget = {})
      : limit_(limit_bytes), budget_(std::move(budget)) {}
  ~MemoryBudget() { budget_.give_back(used_); }
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  Status take(std::int64_t bytes) {
    REEF_RETURN_IF_ERROR(budget_.take(bytes, "a tensor of the model"));
    if (bytes > limit_ - used_) {
      budget_.give_back(bytes);
      return make_error(
          StatusCode::kResourceExhausted,
          "{} more bytes are needed, with {} in use and a limit of {}; raise the memory limit if the model "
          "can be trusted",
          bytes, used_, limit_);
    }
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    return ok_status();
  }
  void give_back(std::int64_t bytes) {
    used_ -= bytes;
    budget_.give_back(bytes);
  }
  std::int64_t used() const { return used_; }
  std::int64_t peak() const { return peak_; }

 private:
  std::int64_t limit_;
  Budget budget_;
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;
};

// Zero-filled memory aligned to kArenaAlignment; data() is never null once allocated.
class Block {
 public:
  Block() = default;
  ~Block() { release(); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Status allocate(MemoryBudget& budget, std::int64_t bytes) {
    release();
    REEF_RETURN_IF_ERROR(budget.take(bytes));
    const auto size = static_cast<std::size_t>(std::max(bytes, kArenaAlignment));
    data_ = static_cast<std::byte*>(
        ::operator new(size, std::align_val_t(static_cast<std::size_t>(kArenaAlignment)), std::nothrow));
    if (data_ == nullptr) {
      budget.give_back(bytes);
      return make_error(StatusCode::kResourceExhausted, "the system has no {} bytes of memory left", bytes);
    }
    std::memset(data_, 0, size);
    budget_ = &budget;
    bytes_ = bytes;
    return ok_status();
  }
  void release() {
    if (data_ == nullptr) return;
    ::operator delete(data_, std::align_val_t(static_cast<std::size_t>(kArenaAlignment)));
    budget_->give_back(bytes_);
    data_ = nullptr;
    bytes_ = 0;
  }

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }

 private:
  MemoryBudget* budget_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace reef::cpu

// SPDX-License-Identifier: Apache-2.0
// Walks an instruction's loop nest step by step: the address of each step, and where passes begin and end.
//
// A pass of level L is one complete traversal of dimensions 0 to L-1; level 0 is every single step. Watchers are asked
// at the beginning of a pass, producers count at its end (docs/hardware/isa.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/status.h"
#include "isa/instruction.h"

namespace reef::retarget {

// The part that does not change while walking. Shared by all tiles.
struct NestShape {
  int dims = 0;
  std::int64_t base = 0;
  std::array<std::uint64_t, isa::kMaxDims> stride{};  // modulo 2^64: foreign strides may be anything
  std::array<std::int64_t, isa::kMaxDims> count{};
  std::array<std::int64_t, isa::kMaxDims + 1> pass_steps{};  // of level L, without clip
  int clip_dim = 0;
  std::int64_t clip_steps = 1;
  int buffer_level = 0;
  std::int64_t buffer_stride = 0;
  std::int64_t steps = 0;  // clip included
};

// Refuses nests of more steps than could be walked.
Result<NestShape> nest_shape(const isa::Nest& nest, int dims);

class NestWalk {
 public:
  NestWalk() = default;
  // `buffer_phase`: passes of the buffer level that earlier instructions of the unit have made since the last restart.
  NestWalk(const NestShape& shape, std::uint32_t buffer_phase) : shape_(&shape), phase_(buffer_phase) { toggle(); }

  bool done() const { return done_; }
  std::int64_t step() const { return step_; }    // so many have been made
  std::int64_t index() const { return index_; }  // of this step, counting the clipped ones
  std::int64_t address() const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(shape_->base + toggled_) + offset_);
  }
  std::int64_t dim_index(int dim) const { return at_[static_cast<std::size_t>(dim)]; }
  // The dimension is at its last index.
  bool at_last(int dim) const { return at_[static_cast<std::size_t>(dim)] + 1 >= limit(dim); }
  bool begins_pass(int level) const;
  std::int64_t pass(int level) const {
    return index_ / shape_->pass_steps[static_cast<std::size_t>(clip_level(level))];
  }

  // To the next step. Afterwards `ended(level)` is the number of passes that ended with the step just left: clipped
  // steps count as made.
  void advance();
  std::int64_t ended(int level) const {
    const std::int64_t steps = shape_->pass_steps[static_cast<std::size_t>(clip_level(level))];
    return done_ ? 1 : index_ / steps - left_ / steps;
  }
  // Passes of the buffer level made by a complete walk; 0 without a double buffer.
  std::uint32_t buffer_passes() const { return buffer_passes_; }

 private:
  int clip_level(int level) const { return level < shape_->dims ? level : shape_->dims; }
  std::int64_t limit(int dim) const {
    const auto k = static_cast<std::size_t>(dim);
    if (dim != 0 || shape_->clip_dim == 0) return shape_->count[k];
    const auto c = static_cast<std::size_t>(shape_->clip_dim);
    return at_[c] + 1 == shape_->count[c] ? std::min(shape_->clip_steps, shape_->count[0]) : shape_->count[0];
  }
  void toggle();

  const NestShape* shape_ = nullptr;
  std::array<std::int64_t, isa::kMaxDims> at_{};
  std::int64_t index_ = 0, left_ = 0, step_ = 0, toggled_ = 0;  // left_: index of the step before
  std::uint64_t offset_ = 0;
  std::uint32_t phase_ = 0, buffer_passes_ = 0;
  bool done_ = false;
};

}  // namespace reef::retarget

// SPDX-License-Identifier: Apache-2.0
// A loop nest ready to be walked: where passes begin and end, and the address of every step.
//
// Positions count steps as if nothing were clipped away, so that position / pass_length(level) is the number of the
// pass. A pass of level L is one complete traversal of dimensions 0 to L-1; level 0 is every single step. Watchers are
// asked at the beginning of a pass, producers count at its end (docs/hardware/isa.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/status.h"
#include "isa/instruction.h"

namespace reef::isa {

struct NestShape {
  int dims = 0;
  std::int64_t base = 0;
  std::array<std::uint64_t, kMaxDims> stride{};  // modulo 2^64: foreign strides may be anything
  std::array<std::int64_t, kMaxDims> count{};
  std::array<std::int64_t, kMaxDims + 1> pass_lengths{};  // of level L
  // While dimension clip_dim is at its last index, dimension clip_inner makes clip_steps steps. Dimension 0 makes fewer
  // than its count, or more; dimension 1 makes fewer.
  int clip_dim = 0;  // 0: no clip
  int clip_inner = 0;
  std::int64_t clip_steps = 1;
  int buffer_level = 0;
  std::int64_t buffer_stride = 0;
  std::int64_t steps = 0;  // that are really made

  std::int64_t pass_length(int level) const { return pass_lengths[at(std::min(level, dims))]; }
  std::int64_t unclipped_size() const { return pass_length(dims); }
  // The position of the last step that is really made.
  std::int64_t last_position() const {
    if (clip_dim == 0) return unclipped_size() - 1;
    const auto inner = static_cast<std::size_t>(clip_inner);
    return unclipped_size() - (count[inner] - clip_steps) * pass_lengths[inner] - 1;
  }
  // Positions end here. A last run that is longer than the others belongs to the last pass of every level but 0.
  std::int64_t size() const { return std::max(unclipped_size(), last_position() + 1); }
  // Passes of `level` that are complete when everything before `position` is done. Steps that are clipped away at the
  // very end do not count.
  std::int64_t passes_before(std::int64_t position, int level) const {
    if (level == 0) return position >= size() ? last_position() + 1 : position;
    const std::int64_t length = pass_length(level);
    if (position >= size()) return std::min(last_position(), unclipped_size() - 1) / length + 1;
    return std::min(position / length, unclipped_size() / length - 1);
  }
  std::int64_t passes(int level) const { return passes_before(size(), level); }
  // Passes of the double buffer made by the whole nest; 0 without one.
  std::int64_t buffer_passes() const { return buffer_stride == 0 ? 0 : passes(buffer_level); }
};

// `clip_inner`: the dimension that a clip shortens, 0 or 1. Refuses nests of more positions than any program could
// walk, and clips of dimension 1 that no program has: ones that lengthen it, and ones at its own last index.
Result<NestShape> nest_shape(const Nest& nest, int dims, int clip_inner = 0);

// Stands on a step of a nest.
class NestCursor {
 public:
  NestCursor() = default;
  // `buffer_phase`: passes of the double buffer made by earlier instructions since it was last restarted.
  NestCursor(const NestShape& shape, std::int64_t buffer_phase)
      : shape_(&shape), end_(shape.size()), phase_(buffer_phase) {
    toggle();
  }

  // Stands on another position, which must be one of a step that is made, or the end.
  void seek(std::int64_t position);

  bool done() const { return position_ >= end_; }
  std::int64_t position() const { return position_; }
  std::int64_t address() const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(shape_->base + toggled_) + offset_);
  }
  // Steps of dimension 0 that follow at equal distances, this one included.
  std::int64_t run() const { return limit() - at_[0]; }
  // Precondition: steps <= run().
  void advance(std::int64_t steps = 1) {
    left_ = position_;
    at_[0] += steps;
    position_ += steps;
    offset_ += static_cast<std::uint64_t>(steps) * shape_->stride[0];
    if (at_[0] >= limit()) carry();
    if (shape_->buffer_stride != 0) toggle();
  }
  std::int64_t index(int dim) const { return at_[at(dim)]; }
  bool at_last(int dim) const { return at_[at(dim)] + 1 >= limit_of(dim); }
  bool begins_pass(int level) const {
    for (int k = 0; k < std::min(level, shape_->dims); ++k) {
      if (at_[at(k)] != 0) return false;
    }
    return true;
  }
  std::int64_t pass(int level) const { return shape_->passes_before(position_, level); }
  // Passes that ended with the last advance; steps that are clipped away in between count as made.
  std::int64_t ended(int level) const { return pass(level) - shape_->passes_before(left_, level); }
  std::int64_t buffer_passes() const { return shape_->buffer_passes(); }

 private:
  std::int64_t limit() const { return limit_of(0); }
  std::int64_t limit_of(int dim) const {
    const std::int64_t count = shape_->count[at(dim)];
    if (shape_->clip_dim == 0 || shape_->clip_inner != dim) return count;
    const auto clip = static_cast<std::size_t>(shape_->clip_dim);
    return at_[clip] + 1 == shape_->count[clip] ? shape_->clip_steps : count;
  }
  void carry();
  void toggle() {
    if (shape_->buffer_stride == 0) return;
    const std::int64_t pass = shape_->passes_before(position_, shape_->buffer_level) + phase_;
    toggled_ = (pass & 1) != 0 ? shape_->buffer_stride : 0;
  }

  const NestShape* shape_ = nullptr;
  std::array<std::int64_t, kMaxDims> at_{};
  std::int64_t position_ = 0, end_ = 0, left_ = 0, toggled_ = 0, phase_ = 0;  // left_: position before the last advance
  std::uint64_t offset_ = 0;
};

}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
#include "retarget/nest_walk.h"

#include <algorithm>

namespace reef::retarget {

namespace {

// No compiled program has a nest of more than a few million steps.
constexpr std::int64_t kMaxNestSteps = std::int64_t{1} << 30;

}  // namespace

Result<NestShape> nest_shape(const isa::Nest& nest, int dims) {
  NestShape shape;
  shape.dims = dims;
  shape.base = nest.base;
  shape.pass_steps[0] = 1;
  for (int k = 0; k < dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    shape.stride[d] = static_cast<std::uint64_t>(nest.dims[d].stride);
    shape.count[d] = nest.dims[d].count;
    const std::int64_t steps = shape.pass_steps[d] * shape.count[d];  // both factors are below 2^31
    if (steps > kMaxNestSteps) {
      return make_error(StatusCode::kResourceExhausted, "a loop nest has more than {} steps", kMaxNestSteps);
    }
    shape.pass_steps[d + 1] = steps;
  }
  shape.clip_dim = static_cast<int>(nest.clip_dim) < dims ? static_cast<int>(nest.clip_dim) : 0;
  shape.clip_steps = nest.clip_steps;
  shape.buffer_level = std::min(static_cast<int>(nest.buffer_level), dims);
  shape.buffer_stride = nest.buffer_stride;
  shape.steps = nest.steps().value_or(0);
  return shape;
}

bool NestWalk::begins_pass(int level) const {
  const int levels = clip_level(level);
  for (int k = 0; k < levels; ++k) {
    if (at_[static_cast<std::size_t>(k)] != 0) return false;
  }
  return true;
}

void NestWalk::toggle() {
  if (shape_->buffer_stride == 0) return;
  if (!begins_pass(shape_->buffer_level)) return;
  const auto passes = static_cast<std::uint32_t>(pass(shape_->buffer_level));
  buffer_passes_ = passes + 1;
  toggled_ = ((passes + phase_) & 1) != 0 ? shape_->buffer_stride : 0;
}

void NestWalk::advance() {
  left_ = index_;
  ++step_;
  ++index_;
  ++at_[0];
  offset_ += shape_->stride[0];
  if (at_[0] < limit(0)) return toggle();
  index_ += shape_->count[0] - at_[0];
  offset_ -= static_cast<std::uint64_t>(at_[0]) * shape_->stride[0];
  at_[0] = 0;
  for (int k = 1; k < shape_->dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    ++at_[d];
    offset_ += shape_->stride[d];
    if (at_[d] < shape_->count[d]) return toggle();
    offset_ -= static_cast<std::uint64_t>(at_[d]) * shape_->stride[d];
    at_[d] = 0;
  }
  done_ = true;
}

}  // namespace reef::retarget

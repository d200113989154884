// SPDX-License-Identifier: Apache-2.0
#include "isa/nest_shape.h"

namespace reef::isa {
namespace {

// The largest nest of a compiled program has a few million steps.
constexpr std::int64_t kMaxPositions = std::int64_t{1} << 32;

}  // namespace

Result<NestShape> nest_shape(const Nest& nest, int dims, int clip_inner) {
  NestShape shape;
  shape.dims = dims;
  shape.base = nest.base;
  shape.clip_dim = static_cast<int>(nest.clip_dim) < dims ? static_cast<int>(nest.clip_dim) : 0;
  shape.clip_steps = shape.clip_dim == 0 ? 1 : nest.clip_steps;
  shape.clip_inner = shape.clip_dim == 0 ? 0 : clip_inner;
  shape.pass_lengths[0] = 1;
  for (int k = 0; k < dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    shape.stride[d] = static_cast<std::uint64_t>(nest.dims[d].stride);
    shape.count[d] = nest.dims[d].count;
    shape.pass_lengths[d + 1] = shape.pass_lengths[d] * shape.count[d];  // factors are below 2^32 and 2^19
    REEF_REQUIRE(shape.pass_lengths[d + 1] <= kMaxPositions, "a loop nest has more than {} steps", kMaxPositions);
  }
  shape.buffer_level = static_cast<int>(nest.buffer_level);
  shape.buffer_stride = nest.buffer_stride;
  shape.steps = nest.steps(shape.clip_inner).value_or(0);
  if (shape.clip_inner == 1) {
    if (shape.clip_dim < 2 || shape.clip_steps > shape.count[1]) {
      return unsupported("a clip of dimension 1 to {} steps, which has {}, at the end of dimension {}",
                         shape.clip_steps, shape.count[1], shape.clip_dim);
    }
  }
  return shape;
}

void NestCursor::seek(std::int64_t position) {
  position_ = left_ = position;
  offset_ = 0;
  for (int k = 0; k < shape_->dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    at_[d] = position / shape_->pass_lengths[d] % shape_->count[d];
    offset_ += static_cast<std::uint64_t>(at_[d]) * shape_->stride[d];
  }
  toggle();
}

void NestCursor::carry() {
  const std::int64_t beyond = position_;
  position_ += shape_->count[0] - at_[0];
  offset_ -= static_cast<std::uint64_t>(at_[0]) * shape_->stride[0];
  at_[0] = 0;
  for (int k = 1; k < shape_->dims; ++k) {
    const auto d = static_cast<std::size_t>(k);
    ++at_[d];
    offset_ += shape_->stride[d];
    if (at_[d] < limit_of(k)) return;
    position_ += (shape_->count[d] - at_[d]) * shape_->pass_lengths[d];  // what the clip leaves out
    offset_ -= static_cast<std::uint64_t>(at_[d]) * shape_->stride[d];
    at_[d] = 0;
  }
  position_ = std::max(beyond, end_);  // done
}

}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
// The exchange of square blocks of pixels with channels, shared by SPACE_TO_DEPTH and DEPTH_TO_SPACE:
//
// deep[b, y, x, (dy * block + dx) * depth + c] = wide[b, y * block + dy, x * block + dx, c]
#pragma once

#include <cstdint>

#include "base/status.h"
#include "ops/movement.h"

namespace reef::ops {

// block_size, checked to be such that block_size^2 is a sensible number of pixels.
inline Result<std::int64_t> block_size_of(const OpContext& ctx) {
  constexpr std::int64_t kLargest = 1 << 15;
  const std::int64_t block = ctx.attributes().get_int("block_size");
  REEF_REQUIRE(block >= 1 && block <= kLargest, "block_size is {}; it must be 1 to {}", block, kLargest);
  return block;
}

// The copy from wide to deep. A row of `block` neighbouring pixels is contiguous on both sides.
inline kernels::StridedCopy wide_to_deep(const Shape& deep, std::int64_t block, std::int64_t element_bytes) {
  const std::int64_t run = deep[3] / block * element_bytes;
  return {.loops = {{std::int64_t{deep[0]} * deep[1], block * deep[2] * run, block * deep[2] * run},
                    {deep[2], run, block * run},
                    {block, deep[2] * run, run}},
          .run_bytes = run};
}

inline kernels::StridedCopy reversed(kernels::StridedCopy copy) {
  for (kernels::CopyLoop& loop : copy.loops) std::swap(loop.from_stride, loop.to_stride);
  return copy;
}

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/space_batch.h"

#include <algorithm>
#include <limits>

namespace reef::ops {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// Indices i of a blocks dimension for which i * block + shift - margin is inside of [0, size).
struct Inside {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

Inside inside_of(std::int64_t block, std::int64_t shift, std::int64_t margin, std::int64_t size, std::int64_t limit) {
  const std::int64_t first = margin > shift ? (margin - shift + block - 1) / block : 0;
  const std::int64_t end = std::min(limit, (size + margin - shift + block - 1) / block);
  return {first, std::max<std::int64_t>(end - first, 0)};
}

}  // namespace

Result<Blocks> blocks_of(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "input", 3, 4));
  const int spatial = ctx.input(0).shape.rank() - 2;
  REEF_REQUIRE(ctx.input(1).shape == Shape({spatial}) && ctx.input(2).shape == Shape({spatial, 2}),
               "block shape and margins have shapes {} and {}; [{}] and [{}, 2] are needed for input '{}'",
               ctx.input(1).shape.to_string(), ctx.input(2).shape.to_string(), spatial, spatial, ctx.input(0).name);
  Blocks blocks;
  REEF_ASSIGN_OR_RETURN(blocks.sizes, integers(ctx.input(1), "block shape"));
  REEF_ASSIGN_OR_RETURN(blocks.margins, integers(ctx.input(2), "margins"));
  for (const std::int64_t size : blocks.sizes) {
    REEF_REQUIRE(size >= 1 && size <= kMaxInt32, "the block shape contains {}; it must be at least 1", size);
  }
  for (const std::int64_t margin : blocks.margins) {
    REEF_REQUIRE(margin >= 0 && margin <= kMaxInt32, "padding or crop {} must be 0 or more and fit 32 bits", margin);
  }
  return blocks;
}

Status copy_blocks(RunContext& ctx, const Blocks& blocks, const Shape& whole_shape, const Shape& blocks_shape,
                   BlockDirection direction) {
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(ctx.input(0), "input"));
  if (whole_shape.elements() == 0 || blocks_shape.elements() == 0) return ok_status();
  const std::vector<std::int64_t> whole = dense_strides(whole_shape, bytes), block = dense_strides(blocks_shape, bytes);
  const std::int64_t shifts = blocks_shape[0] / whole_shape[0];
  for (std::int64_t s = 0; s < shifts; ++s) {
    kernels::StridedCopy moves{.loops = {{whole_shape[0], whole[0], block[0]}},
                               .run_bytes = whole_shape.last() * bytes};
    moves.to_offset = s * whole_shape[0] * block[0];
    std::int64_t rest = s, group = shifts;
    for (std::size_t d = 0; d < blocks.sizes.size(); ++d) {
      const int dim = static_cast<int>(d) + 1;
      group /= blocks.sizes[d];
      const std::int64_t shift = rest / group, margin = blocks.margins[2 * d];
      rest %= group;
      const Inside inside = inside_of(blocks.sizes[d], shift, margin, whole_shape[dim], blocks_shape[dim]);
      moves.loops.push_back({inside.count, blocks.sizes[d] * whole[d + 1], block[d + 1]});
      moves.from_offset += (inside.first * blocks.sizes[d] + shift - margin) * whole[d + 1];
      moves.to_offset += inside.first * block[d + 1];
    }
    if (direction == BlockDirection::kToWhole) {
      std::swap(moves.from_offset, moves.to_offset);
      for (kernels::CopyLoop& loop : moves.loops) std::swap(loop.from_stride, loop.to_stride);
    }
    copy(ctx, std::move(moves), ctx.input(0).data, ctx.output(0).data);
    if (ctx.environment()->threads().past_deadline()) break;  // the interpreter reports it
  }
  return ok_status();
}

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/resize.h"

#include <algorithm>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {

Status infer_resize(InferContext& ctx, std::int64_t smallest_size) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(1), "size", {DataType::kInt32}));
  REEF_REQUIRE(ctx.input(1).shape == Shape({2}), "size ('{}') has shape {}; [2] is needed: height and width",
               ctx.input(1).name, ctx.input(1).shape.to_string());
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> size, ctx.ints(1));
  REEF_REQUIRE(size[0] >= smallest_size && size[1] >= smallest_size,
               "cannot resize to height {} and width {}; they must be at least {}", size[0], size[1], smallest_size);
  Shape output{input.shape[0], static_cast<std::int32_t>(size[0]), static_cast<std::int32_t>(size[1]), input.shape[3]};
  REEF_RETURN_IF_ERROR(check_shape(output));
  return give_shape(ctx, std::move(output));
}

Result<kernels::ResizeGeometry> resize_geometry(const OpContext& ctx) {
  const Shape& in = ctx.input(0).shape;
  const Shape& out = ctx.output(0).shape;
  kernels::ResizeGeometry geometry{.batches = in[0],
                                   .channels = in[3],
                                   .input_height = in[1],
                                   .input_width = in[2],
                                   .output_height = out[1],
                                   .output_width = out[2],
                                   .align_corners = ctx.attributes().get_bool("align_corners"),
                                   .half_pixel_centers = ctx.attributes().get_bool("half_pixel_centers")};
  REEF_REQUIRE(out.elements() == 0 || in.elements() > 0, "an image of shape {} cannot be resized to {}", in.to_string(),
               out.to_string());
  if (out.elements() == 0) geometry.batches = 0;
  return geometry;
}

std::int64_t resize_grain(const kernels::ResizeGeometry& geometry) {
  constexpr std::int64_t kElementsPerChunk = 1 << 17;  // some 20 microseconds; each computes the columns anew
  return std::max<std::int64_t>(
      1, kElementsPerChunk / std::max<std::int64_t>(geometry.output_width * geometry.channels, 1));
}

}  // namespace reef::ops

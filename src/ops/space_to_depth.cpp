// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_DEPTH: moves blocks of space into channels.
//
// output[b, y, x, (dy * block + dx) * depth + c] = input[b, y * block + dy, x * block + dx, c]
#include "ops/space_depth.h"

#include <limits>

#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kSpaceToDepthAttributes[] = {{"block_size", "side of the square block, at least 1"}};

Status space_to_depth_infer(InferContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_ASSIGN_OR_RETURN(const std::int64_t block, block_size_of(ctx));
  REEF_REQUIRE(input.shape[1] % block == 0 && input.shape[2] % block == 0,
               "height and width of {} must be multiples of block_size {}", input.shape.to_string(), block);
  const std::int64_t depth = input.shape[3] * block * block;
  REEF_REQUIRE(depth <= std::numeric_limits<std::int32_t>::max(), "block_size {} makes {} channels; that is too many",
               block, depth);
  return give_shape(ctx, {input.shape[0], static_cast<std::int32_t>(input.shape[1] / block),
                          static_cast<std::int32_t>(input.shape[2] / block), static_cast<std::int32_t>(depth)});
}

Result<Kernel> space_to_depth_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const std::int64_t block, block_size_of(ctx));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(ctx.input(0), "input"));
  return Kernel([=](RunContext& run) {
    if (run.output(0).elements() == 0) return ok_status();
    copy(run, wide_to_deep(run.output(0).shape, block, bytes), run.input(0).data, run.output(0).data);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef space_to_depth_op = define({.name = name_of(Op::SPACE_TO_DEPTH),
                                                  .summary = "Moves square blocks of pixels into channels.",
                                                  .attributes = kSpaceToDepthAttributes,
                                                  .types = kWholeByteTypes,
                                                  .form = Form::kMove,
                                                  .traits = trait_set({Trait::kPerImage}),
                                                  .infer = space_to_depth_infer,
                                                  .prepare = space_to_depth_prepare,
                                                  .chip = {.first_runtime = 10}});

}  // namespace reef::ops

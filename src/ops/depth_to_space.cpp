// SPDX-License-Identifier: Apache-2.0
// DEPTH_TO_SPACE: moves channels into blocks of space, the inverse of SPACE_TO_DEPTH.
//
// output[b, y * block + dy, x * block + dx, c] = input[b, y, x, (dy * block + dx) * depth + c]
#include "ops/op_def.h"
#include "ops/space_depth.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kDepthToSpaceAttributes[] = {{"block_size", "side of the square block, at least 1"}};

Status depth_to_space_infer(InferContext& ctx) {
  const Tensor& input = ctx.input(0);
  REEF_RETURN_IF_ERROR(require_rank(input, "input", 4, 4));
  REEF_ASSIGN_OR_RETURN(const std::int64_t block, block_size_of(ctx));
  REEF_REQUIRE(input.shape[3] % (block * block) == 0,
               "the {} channels of {} must be a multiple of block_size squared ({})", input.shape[3],
               input.shape.to_string(), block * block);
  REEF_ASSIGN_OR_RETURN(
      Shape shape, shape_from(std::vector<std::int64_t>{input.shape[0], input.shape[1] * block, input.shape[2] * block,
                                                        input.shape[3] / (block * block)}));
  return give_shape(ctx, std::move(shape));
}

Result<Kernel> depth_to_space_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const std::int64_t block, block_size_of(ctx));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(ctx.input(0), "input"));
  return Kernel([=](RunContext& run) {
    if (run.output(0).elements() == 0) return ok_status();
    copy(run, reversed(wide_to_deep(run.input(0).shape, block, bytes)), run.input(0).data, run.output(0).data);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef depth_to_space_op =
    define({.name = name_of(Op::DEPTH_TO_SPACE),
            .summary = "Moves channels into square blocks of pixels.",
            .attributes = kDepthToSpaceAttributes,
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .traits = trait_set({Trait::kPerImage}),
            .infer = depth_to_space_infer,
            .prepare = depth_to_space_prepare,
            .chip = {.instead = "Enlarge with TRANSPOSE_CONV or RESIZE_NEAREST_NEIGHBOR and a CONV_2D.",
                     .rewrite = "pixel-shuffle"}});

}  // namespace reef::ops

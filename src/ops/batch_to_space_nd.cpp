// SPDX-License-Identifier: Apache-2.0
// BATCH_TO_SPACE_ND: puts the elements that SPACE_TO_BATCH_ND dealt out to batches back into blocks, then crops the
// spatial dimensions. See space_batch.h for the exact rule.
#include "ops/op_def.h"
#include "ops/space_batch.h"

namespace reef::ops {
namespace {

Result<Shape> batch_to_space_nd_output_shape(const Shape& input, const Blocks& blocks) {
  std::vector<std::int64_t> dims(input.begin(), input.end());
  for (std::size_t d = 0; d < blocks.sizes.size(); ++d) {
    REEF_REQUIRE(dims[0] % blocks.sizes[d] == 0, "the {} batches of {} cannot be shared out to the blocks", input[0],
                 input.to_string());
    dims[0] /= blocks.sizes[d];
    dims[d + 1] = dims[d + 1] * blocks.sizes[d] - blocks.margins[2 * d] - blocks.margins[2 * d + 1];
  }
  return shape_from(dims);
}

Status batch_to_space_nd_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_RETURN_IF_ERROR(ctx.require_value(2));
  REEF_ASSIGN_OR_RETURN(const Blocks blocks, blocks_of(ctx));
  REEF_ASSIGN_OR_RETURN(Shape shape, batch_to_space_nd_output_shape(ctx.input(0).shape, blocks));
  return give_shape(ctx, std::move(shape));
}

Status batch_to_space_nd_run(RunContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const Blocks blocks, blocks_of(ctx));
  REEF_ASSIGN_OR_RETURN(const Shape shape, batch_to_space_nd_output_shape(ctx.input(0).shape, blocks));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), shape));
  return copy_blocks(ctx, blocks, shape, ctx.input(0).shape, BlockDirection::kToWhole);
}

Result<Kernel> batch_to_space_nd_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return Kernel(batch_to_space_nd_run);
}

}  // namespace

constinit const OpDef batch_to_space_nd_op =
    define({.name = name_of(Op::BATCH_TO_SPACE_ND),
            .summary = "Gathers batches into blocks of space.",
            .inputs = {3, 3},
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .infer = batch_to_space_nd_infer,
            .prepare = batch_to_space_nd_prepare,
            .chip = {.instead = "Use a dilated CONV_2D or DEPTHWISE_CONV_2D instead of SPACE_TO_BATCH_ND, convolution "
                                "and BATCH_TO_SPACE_ND.",
                     .rewrite = "dilated-conv"}});

}  // namespace reef::ops

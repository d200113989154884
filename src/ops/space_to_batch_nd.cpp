// SPDX-License-Identifier: Apache-2.0
// SPACE_TO_BATCH_ND: pads the spatial dimensions (all but the first and last), then deals each block's elements out to
// separate batches. See space_batch.h for the exact rule. Padding is zero, in quantized tensors the output's zero
// point.
#include "ops/op_def.h"
#include "ops/pad_family.h"
#include "ops/space_batch.h"

namespace reef::ops {
namespace {

Result<Shape> space_to_batch_nd_output_shape(const Shape& input, const Blocks& blocks) {
  std::vector<std::int64_t> dims(input.begin(), input.end());
  for (std::size_t d = 0; d < blocks.sizes.size(); ++d) {
    const std::int64_t padded = dims[d + 1] + blocks.margins[2 * d] + blocks.margins[2 * d + 1];
    REEF_REQUIRE(padded % blocks.sizes[d] == 0, "dimension {} of {} has size {} with padding, not a multiple of {}",
                 d + 1, input.to_string(), padded, blocks.sizes[d]);
    dims[d + 1] = padded / blocks.sizes[d];
    dims[0] *= blocks.sizes[d];
    REEF_REQUIRE(dims[0] <= INT32_MAX, "the blocks make too many batches");
  }
  return shape_from(dims);
}

Status space_to_batch_nd_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(ctx.require_value(1));
  REEF_RETURN_IF_ERROR(ctx.require_value(2));
  REEF_ASSIGN_OR_RETURN(const Blocks blocks, blocks_of(ctx));
  REEF_ASSIGN_OR_RETURN(Shape shape, space_to_batch_nd_output_shape(ctx.input(0).shape, blocks));
  return give_shape(ctx, std::move(shape));
}

Status space_to_batch_nd_run(RunContext& ctx, const PadElement& zero) {
  REEF_ASSIGN_OR_RETURN(const Blocks blocks, blocks_of(ctx));
  REEF_ASSIGN_OR_RETURN(const Shape shape, space_to_batch_nd_output_shape(ctx.input(0).shape, blocks));
  REEF_RETURN_IF_ERROR(require_output_shape(ctx.output(0), shape));
  REEF_ASSIGN_OR_RETURN(const std::int64_t bytes, element_bytes(ctx.input(0), "input"));
  if (shape.elements() != ctx.input(0).elements()) {
    kernels::fill(ctx.environment()->threads(), ctx.output(0).data, shape.elements(), zero.data(),
                  static_cast<std::size_t>(bytes));
  }
  return copy_blocks(ctx, blocks, ctx.input(0).shape, shape, BlockDirection::kToBlocks);
}

Result<Kernel> space_to_batch_nd_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  REEF_ASSIGN_OR_RETURN(const PadElement zero, zero_element(ctx.input(0), ctx.output(0)));
  return Kernel([zero](RunContext& run_ctx) { return space_to_batch_nd_run(run_ctx, zero); });
}

}  // namespace

constinit const OpDef space_to_batch_nd_op =
    define({.name = name_of(Op::SPACE_TO_BATCH_ND),
            .summary = "Deals the elements of blocks out to batches.",
            .inputs = {3, 3},
            .types = kWholeByteTypes,
            .form = Form::kMove,
            .infer = space_to_batch_nd_infer,
            .prepare = space_to_batch_nd_prepare,
            .chip = {.instead = "Use a dilated CONV_2D or DEPTHWISE_CONV_2D instead of SPACE_TO_BATCH_ND, convolution "
                                "and BATCH_TO_SPACE_ND.",
                     .rewrite = "dilated-conv"}});

}  // namespace reef::ops

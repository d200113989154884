// SPDX-License-Identifier: Apache-2.0
// FILL: a tensor of a given shape with one value everywhere.
//
// Only bytes are copied, so the element type matters by its size alone. Strings are not supported.
#include "kernels/fill/repeat.h"
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/same_quantization.h"

namespace reef::ops {
namespace {

Status fill_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "dims", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "dims", 1, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dims, ctx.ints(0));
  Shape output;
  for (const std::int64_t dim : dims) {
    REEF_REQUIRE(dim >= 0 && dim <= INT32_MAX, "dims ('{}') holds {}; sizes must be between 0 and 2^31 - 1",
                 ctx.input(0).name, dim);
    output.push_back(static_cast<std::int32_t>(dim));
  }
  REEF_RETURN_IF_ERROR(check_shape(output));
  return give_shape(ctx, std::move(output));
}

Result<Kernel> fill_prepare(PrepareContext& ctx) {
  const Tensor& value = ctx.input(1);
  REEF_RETURN_IF_ERROR(require_rank(value, "value", 0, 0));
  REEF_RETURN_IF_ERROR(require_same_type(value, ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_same_quantization(value, ctx.output(0)));
  const int bits = ir::bits_per_element(value.type);
  if (bits < 8 || bits > 64) return unsupported_types(ctx);
  return Kernel([bytes = static_cast<std::size_t>(bits) / 8](RunContext& run) {
    kernels::repeat_bytes(run.input(1).data, bytes, run.output(0).bytes / bytes, run.output(0).data);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef fill_op =
    define({.name = name_of(Op::FILL),
            .summary = "Makes a tensor with one value everywhere.",
            .inputs = {2, 2},
            .types = "any of 8, 16, 32 or 64 bits; shape: int32, int64",
            .infer = fill_infer,
            .prepare = fill_prepare,
            .chip = {.instead = "Convert the model with fixed input sizes, so that it becomes a constant.",
                     .rewrite = "fixed-shapes"}});

}  // namespace reef::ops

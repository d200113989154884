// SPDX-License-Identifier: Apache-2.0
// SELECT_V2: elements of the second input where the first is true, of the third elsewhere, all three broadcast
// together.
//
// Elements are copied; all must be quantized alike, which TFLite takes for granted and so do we.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"
#include "ops/select_kernel.h"

namespace reef::ops {
namespace {

Status select_v2_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 3));
  if (keeps_declared_shape(ctx)) return ok_status();
  REEF_ASSIGN_OR_RETURN(const Shape values, broadcast_shapes(ctx.input(1).shape, ctx.input(2).shape));
  REEF_ASSIGN_OR_RETURN(Shape shape, broadcast_shapes(ctx.input(0).shape, values));
  return give_shape(ctx, std::move(shape));
}

Result<Kernel> select_v2_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 3));
  return prepare_select(ctx, ctx.input(0).shape);
}

}  // namespace

constinit const OpDef select_v2_op =
    define({.name = name_of(Op::SELECT_V2),
            .summary = "Takes each element from one of two inputs, as a condition says, with broadcasting.",
            .inputs = {3, 3},
            .types = "any type of 8, 16, 32 or 64 bits",
            .form = Form::kElementwise,
            .traits = trait_set({Trait::kCopiesOperands}),
            .infer = select_v2_infer,
            .prepare = select_v2_prepare,
            .chip = {.instead = "Multiply by a mask of zeros and ones (MUL)."}});

}  // namespace reef::ops

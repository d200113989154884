// SPDX-License-Identifier: Apache-2.0
// SELECT: elements of the second input where the first is true, of the third elsewhere.
//
// The condition has the shape of the other two, or is a scalar, or a vector that selects along their first dimension.
// Elements are copied; all must be quantized alike, which TFLite takes for granted and so do we.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"
#include "ops/select_kernel.h"

namespace reef::ops {
namespace {

Status select_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 3));
  if (keeps_declared_shape(ctx)) return ok_status();
  const Shape& condition = ctx.input(0).shape;
  const Shape& x = ctx.input(1).shape;
  const Shape& y = ctx.input(2).shape;
  REEF_REQUIRE(x == y, "the values have shapes {} and {}; SELECT needs equal ones (SELECT_V2 broadcasts)",
               x.to_string(), y.to_string());
  const bool selects_rows = condition.rank() == 1 && x.rank() >= 1 && condition[0] == x[0];
  REEF_REQUIRE(condition == x || condition.rank() == 0 || selects_rows,
               "the condition has shape {}; it must be a scalar, a vector over the values' first dimension or of their "
               "shape {}",
               condition.to_string(), x.to_string());
  return give_shape(ctx, x);
}

Result<Kernel> select_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 3));
  // A vector condition belongs to the first dimension, not, as in broadcasting, to the last.
  Shape condition = ctx.input(0).shape;
  if (condition.rank() == 1) {
    while (condition.rank() < ctx.input(1).shape.rank()) condition.push_back(1);
  }
  return prepare_select(ctx, condition);
}

}  // namespace

constinit const OpDef select_op = define({.name = name_of(Op::SELECT),
                                          .summary = "Takes each element from one of two inputs, as a condition says.",
                                          .inputs = {3, 3},
                                          .types = "any type of 8, 16, 32 or 64 bits",
                                          .form = Form::kElementwise,
                                          .traits = trait_set({Trait::kCopiesOperands}),
                                          .infer = select_infer,
                                          .prepare = select_prepare,
                                          .chip = {.instead = "Multiply by a mask of zeros and ones (MUL)."}});

}  // namespace reef::ops

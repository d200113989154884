// SPDX-License-Identifier: Apache-2.0
// ATAN2: angle of the point (second input, first input), element-wise on equal shapes.
#include <cmath>

#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status atan2_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  REEF_REQUIRE(ctx.input(0).shape == ctx.input(1).shape, "the shapes {} and {} differ; ATAN2 does not broadcast",
               ctx.input(0).shape.to_string(), ctx.input(1).shape.to_string());
  return give_shape(ctx, ctx.input(0).shape);
}

Result<Kernel> atan2_prepare(PrepareContext& ctx) {
  return prepare_uniform<float, double>(ctx, []<typename T>(T y, T x) { return std::atan2(y, x); });
}

}  // namespace

constinit const OpDef atan2_op =
    with_inference(atan2_infer, define({.name = name_of(Op::ATAN2),
                                        .summary = "Angle of a point from its y and x coordinates.",
                                        .types = "float32; float64",
                                        .form = Form::kBinary,
                                        .prepare = atan2_prepare,
                                        .chip = {.instead = "Compute it on the CPU behind the model."}}));

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"

#include "ops/op_def.h"

namespace reef::ops {

Status require_inputs(const OpContext& ctx, int count) {
  for (int i = 0; i < count; ++i) REEF_REQUIRE(ctx.has_input(i), "input {} is missing; this op needs it", i);
  return ok_status();
}

Status infer_broadcast(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  REEF_ASSIGN_OR_RETURN(Shape shape, broadcast_shapes(ctx.input(0).shape, ctx.input(1).shape));
  return give_shape(ctx, std::move(shape));
}

Status require_uniform_types(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 2));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(1)));
  return require_same_type(ctx.input(0), ctx.output(0));
}

}  // namespace reef::ops

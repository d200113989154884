// SPDX-License-Identifier: Apache-2.0
// L2_POOL_2D: the root of the mean square of each window, channel by channel; padding is left out of sum and count.
#include "ir/op.h"
#include "ops/checks.h"
#include "ops/pool.h"

namespace reef::ops {
namespace {

Result<Kernel> l2_pool_2d_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kFloat32}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return make_pool_kernel<float>(ctx, kernels::l2_pool);
}

}  // namespace

constinit const OpDef l2_pool_2d_op = define({.name = name_of(Op::L2_POOL_2D),
                                              .summary = "Takes the root of the mean square of a window.",
                                              .attributes = kPoolAttributes,
                                              .types = "float32",
                                              .infer = infer_pool,
                                              .prepare = l2_pool_2d_prepare,
                                              .chip = {.instead = "Use MUL, AVERAGE_POOL_2D and RSQRT."}});

}  // namespace reef::ops

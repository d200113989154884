// SPDX-License-Identifier: Apache-2.0
// BROADCAST_ARGS: the shape that two shapes broadcast to.
#include <algorithm>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status broadcast_args_check(const OpContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "first shape", {DataType::kInt32, DataType::kInt64}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.input(1)));
  REEF_RETURN_IF_ERROR(require_rank(ctx.input(0), "first shape", 1, 1));
  return require_rank(ctx.input(1), "second shape", 1, 1);
}

Status broadcast_args_infer(InferContext& ctx) {
  REEF_RETURN_IF_ERROR(broadcast_args_check(ctx));
  return give_shape(ctx, {std::max(ctx.input(0).shape[0], ctx.input(1).shape[0])});
}

template <typename T>
Status broadcast_args_run(RunContext& ctx) {
  const std::span<const T> a = ctx.input(0).values<T>(), b = ctx.input(1).values<T>();
  const std::span<T> output = ctx.output(0).mutable_values<T>();
  for (std::size_t i = 0; i < output.size(); ++i) {  // counted from the innermost dimension
    const T x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const T y = i < b.size() ? b[b.size() - 1 - i] : 1;
    REEF_REQUIRE(x == y || x == 1 || y == 1, "sizes {} and {} of dimension {} cannot be broadcast together", x, y,
                 output.size() - 1 - i);
    output[output.size() - 1 - i] = x == 1 ? y : x;
  }
  return ok_status();
}

Result<Kernel> broadcast_args_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(broadcast_args_check(ctx));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return ctx.input(0).type == DataType::kInt32 ? Kernel(broadcast_args_run<std::int32_t>)
                                               : Kernel(broadcast_args_run<std::int64_t>);
}

}  // namespace

constinit const OpDef broadcast_args_op =
    define({.name = name_of(Op::BROADCAST_ARGS),
            .summary = "Computes the shape that two shapes broadcast to.",
            .inputs = {2, 2},
            .types = "int32; int64",
            .infer = broadcast_args_infer,
            .prepare = broadcast_args_prepare,
            .chip = {.instead = "Convert the model with fixed input sizes: it only computes a shape.",
                     .rewrite = "fixed-shapes"}});

}  // namespace reef::ops

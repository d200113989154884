// SPDX-License-Identifier: Apache-2.0
// RANK: the number of dimensions. It does not look at its input's values.
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status rank_infer(InferContext& ctx) { return give_shape(ctx, Shape()); }

Result<Kernel> rank_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kInt32}));
  return Kernel([](RunContext& run) {
    run.output(0).mutable_values<std::int32_t>()[0] = run.input(0).shape.rank();
    return ok_status();
  });
}

}  // namespace

constinit const OpDef rank_op =
    define({.name = name_of(Op::RANK),
            .summary = "Gives the number of dimensions.",
            .types = "any (output int32)",
            .value_from_shapes = true,
            .infer = rank_infer,
            .prepare = rank_prepare,
            .chip = {.instead = "Convert the model with fixed input sizes: it only computes a shape.",
                     .rewrite = "fold-constants"}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// ZEROS_LIKE: a tensor of zeros of the input's shape.
#include <cstring>

#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> zeros_like_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kFloat32, DataType::kInt32, DataType::kInt64}));
  return Kernel([](RunContext& run) {
    std::memset(run.output(0).data, 0, run.output(0).bytes);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef zeros_like_op =
    define({.name = name_of(Op::ZEROS_LIKE),
            .summary = "A tensor of zeros of the same shape.",
            .types = "float32; int32; int64",
            .infer = infer_same_shape,
            .prepare = zeros_like_prepare,
            .chip = {.instead = "Convert the model with fixed input sizes, so that it becomes a constant.",
                     .rewrite = "fold-constants"}});

}  // namespace reef::ops

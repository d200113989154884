// SPDX-License-Identifier: Apache-2.0
// DENSIFY: a sparse constant as an ordinary tensor. Constants are written out when a model enters (ir/densify.h), so
// that what is left to do is a copy.
#include <cstring>

#include "ops/checks.h"
#include "ops/movement.h"
#include "ops/op_def.h"
#include "ops/unary.h"

namespace reef::ops {
namespace {

Result<Kernel> densify_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(check_moved(ctx.input(0), ctx.output(0)));
  return Kernel([](RunContext& run) {
    if (run.input(0).bytes > 0) std::memcpy(run.output(0).data, run.input(0).data, run.input(0).bytes);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef densify_op =
    define({.name = name_of(Op::DENSIFY),
            .summary = "Writes out a tensor that is stored without its zeros.",
            .types = kWholeByteTypes,
            .infer = infer_same_shape,
            .prepare = densify_prepare,
            .chip = {.instead = "Constants are written out by Reef; convert the model without sparsity otherwise.",
                     .rewrite = "fold-constants"}});

}  // namespace reef::ops

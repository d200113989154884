// SPDX-License-Identifier: Apache-2.0
// LOGICAL_NOT: logical negation.
#include "ops/checks.h"
#include "ops/elementwise.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status logical_not_run(RunContext& ctx) {
  // Read as bytes: a file may hold bools that are neither 0 nor 1.
  const std::uint8_t* in = ctx.input(0).values<std::uint8_t>().data();
  bool* out = ctx.output(0).mutable_values<bool>().data();
  ctx.parallel_for(ctx.output(0).elements(), kElementwiseGrain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = in[i] == 0;
  });
  return ok_status();
}

Result<Kernel> logical_not_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_inputs(ctx, 1));
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "input", {DataType::kBool}));
  REEF_RETURN_IF_ERROR(require_same_type(ctx.input(0), ctx.output(0)));
  return Kernel(logical_not_run);
}

}  // namespace

constinit const OpDef logical_not_op = define({.name = name_of(Op::LOGICAL_NOT),
                                               .summary = "Logical negation.",
                                               .types = "bool",
                                               .form = Form::kUnary,
                                               .prepare = logical_not_prepare,
                                               .chip = {.instead = "Keep logic out of the network."}});

}  // namespace reef::ops

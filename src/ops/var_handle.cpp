// SPDX-License-Identifier: Apache-2.0
// VAR_HANDLE: the handle of a variable that lives beside the graph. Equal names give equal handles.
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kVarHandleAttributes[] = {{"container", "first part of the variable's name"},
                                                 {"shared_name", "second part of the variable's name"}};

Status var_handle_infer(InferContext& ctx) { return give_shape(ctx, {1}); }

Result<Kernel> var_handle_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.output(0), "output", {DataType::kResource}));
  const std::int32_t handle = ctx.environment()->variable_handle(ctx.attributes().get_string("container"),
                                                                 ctx.attributes().get_string("shared_name"));
  return Kernel([handle](RunContext& run) {
    run.output(0).mutable_values<std::int32_t>()[0] = handle;
    return ok_status();
  });
}

}  // namespace

constinit const OpDef var_handle_op =
    define({.name = name_of(Op::VAR_HANDLE),
            .summary = "Gives the handle of a named variable.",
            .inputs = {0, 0},
            .attributes = kVarHandleAttributes,
            .types = "resource",
            .has_state = true,
            .infer = var_handle_infer,
            .prepare = var_handle_prepare,
            .chip = {.instead = "Make the variable an input and an output of the model."}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
// ASSIGN_VARIABLE: gives the variable with handle `input 0` the type, shape and value of input 1.
#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status assign_variable_infer(InferContext&) { return ok_status(); }

Result<Kernel> assign_variable_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "handle", {DataType::kResource}));
  REEF_REQUIRE(ctx.input(0).elements() == 1, "handle '{}' must have one element", ctx.input(0).name);
  if (ir::bits_per_element(ctx.input(1).type) == 0) return unsupported_types(ctx);
  return Kernel([](RunContext& run) -> Status {
    REEF_REQUIRE(!run.input(0).values<std::int32_t>().empty(), "handle '{}' has no value", run.input(0).name);
    const Tensor& value = run.input(1);
    OwnedTensor& variable = run.environment()->variables()[run.input(0).values<std::int32_t>()[0]];
    variable.type = value.type;
    variable.shape = value.shape;
    variable.data.assign(value.data, value.data + value.bytes);
    return ok_status();
  });
}

}  // namespace

constinit const OpDef assign_variable_op =
    define({.name = name_of(Op::ASSIGN_VARIABLE),
            .summary = "Stores a tensor in a variable.",
            .inputs = {2, 2},
            .outputs = {0, 0},
            .types = "resource handle, value of any type with a fixed element size",
            .has_state = true,
            .infer = assign_variable_infer,
            .prepare = assign_variable_prepare,
            .chip = {.instead = "Make the variable an input and an output of the model."}});

}  // namespace reef::ops

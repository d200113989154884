// SPDX-License-Identifier: Apache-2.0
// READ_VARIABLE: the value of the variable with handle `input 0`. A variable that was never assigned is an error, as in
// TFLite. Its shape is taken from the variable, so it is known only while running.
#include <cstring>

#include "ops/checks.h"
#include "ops/op_def.h"

namespace reef::ops {
namespace {

Status read_variable_infer(InferContext&) {
  return make_error(StatusCode::kDeferred, "a variable's shape is known only when it is read");
}

Status read_variable_run(RunContext& ctx) {
  REEF_REQUIRE(!ctx.input(0).values<std::int32_t>().empty(), "handle '{}' has no value", ctx.input(0).name);
  const auto& variables = ctx.environment()->variables();
  const auto found = variables.find(ctx.input(0).values<std::int32_t>()[0]);
  REEF_REQUIRE(found != variables.end(), "the variable is read before anything was assigned to it");
  const OwnedTensor& variable = found->second;
  REEF_REQUIRE(variable.type == ctx.output(0).type, "the variable holds {}, but output '{}' is {}",
               ir::type_name(variable.type), ctx.output(0).name, ir::type_name(ctx.output(0).type));
  REEF_RETURN_IF_ERROR(ctx.resize_output(0, variable.shape));
  REEF_REQUIRE(ctx.output(0).bytes == variable.data.size(), "the variable has {} bytes, but {} are expected",
               variable.data.size(), ctx.output(0).bytes);
  if (!variable.data.empty()) std::memcpy(ctx.output(0).data, variable.data.data(), variable.data.size());
  return ok_status();
}

Result<Kernel> read_variable_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "handle", {DataType::kResource}));
  REEF_REQUIRE(ctx.input(0).elements() == 1, "handle '{}' must have one element", ctx.input(0).name);
  return Kernel(read_variable_run);
}

}  // namespace

constinit const OpDef read_variable_op =
    define({.name = name_of(Op::READ_VARIABLE),
            .summary = "Loads a variable's value.",
            .types = "resource handle, value of any type with a fixed element size",
            .has_state = true,
            .infer = read_variable_infer,
            .prepare = read_variable_prepare,
            .chip = {.instead = "Make the variable an input and an output of the model."}});

}  // namespace reef::ops

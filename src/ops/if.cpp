// SPDX-License-Identifier: Apache-2.0
// IF: runs one of two subgraphs on inputs 1..n, chosen by the boolean input 0.
//
// Outputs are static when both branches give the same shapes; otherwise they are sized while running.
#include "ops/checks.h"
#include "ops/op_def.h"
#include "ops/subgraph_call.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kIfAttributes[] = {{"then_subgraph_index", "subgraph to run when the condition is true"},
                                          {"else_subgraph_index", "subgraph to run when it is false"}};

Status if_infer(InferContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t then_index, subgraph_attribute(ctx, "then_subgraph_index"));
  REEF_ASSIGN_OR_RETURN(const std::int32_t else_index, subgraph_attribute(ctx, "else_subgraph_index"));
  REEF_ASSIGN_OR_RETURN(const std::vector<const Tensor*> arguments, call_arguments(ctx, 1));
  REEF_ASSIGN_OR_RETURN(const std::vector<Shape> then_shapes, ctx.environment()->infer_subgraph(then_index, arguments));
  REEF_ASSIGN_OR_RETURN(const std::vector<Shape> else_shapes, ctx.environment()->infer_subgraph(else_index, arguments));
  if (then_shapes != else_shapes) {
    return make_error(StatusCode::kDeferred, "the branches give different shapes");
  }
  REEF_REQUIRE(static_cast<int>(then_shapes.size()) == ctx.output_count(),
               "the branches have {} results for {} outputs", then_shapes.size(), ctx.output_count());
  for (int i = 0; i < ctx.output_count(); ++i) ctx.set_output_shape(i, then_shapes[at(i)]);
  return ok_status();
}

Result<Kernel> if_prepare(PrepareContext& ctx) {
  REEF_RETURN_IF_ERROR(require_type(ctx.input(0), "condition", {DataType::kBool}));
  REEF_REQUIRE(ctx.input(0).elements() == 1, "condition '{}' has shape {}; one element is needed", ctx.input(0).name,
               ctx.input(0).shape.to_string());
  REEF_ASSIGN_OR_RETURN(const std::int32_t then_index, subgraph_attribute(ctx, "then_subgraph_index"));
  REEF_ASSIGN_OR_RETURN(const std::int32_t else_index, subgraph_attribute(ctx, "else_subgraph_index"));
  return Kernel([=](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(const std::vector<const Tensor*> arguments, call_arguments(run, 1));
    const bool condition = run.input(0).values<std::uint8_t>()[0] != 0;
    std::vector<OwnedTensor> results;
    REEF_RETURN_IF_ERROR(run.environment()->run_subgraph(condition ? then_index : else_index, arguments, results));
    return store_results(run, results);
  });
}

}  // namespace

constinit const OpDef if_op =
    define({.name = name_of(Op::IF),
            .summary = "Runs one of two subgraphs, chosen by a condition.",
            .inputs = {1, kAnyNumber},
            .outputs = {0, kAnyNumber},
            .attributes = kIfAttributes,
            .types = "bool condition, operands of any type with a fixed element size",
            .has_state = true,
            .infer = if_infer,
            .prepare = if_prepare,
            .chip = {.instead = "Make one model per branch and choose between them on the CPU."}});

}  // namespace reef::ops

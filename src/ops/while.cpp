// SPDX-License-Identifier: Apache-2.0
// WHILE: runs a body subgraph on its own results for as long as a condition subgraph says so.
//
// Outputs are static when the body keeps the shapes it is given; otherwise they are sized while running. A loop without
// end is stopped only by the interpreter's time limit.

#include "ops/op_def.h"
#include "ops/subgraph_call.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kWhileAttributes[] = {
    {"cond_subgraph_index", "subgraph whose boolean result says whether to go on"},
    {"body_subgraph_index", "subgraph that computes the next values"}};

Status while_infer(InferContext& ctx) {
  REEF_REQUIRE(ctx.input_count() == ctx.output_count(), "{} inputs but {} outputs; a loop needs as many of each",
               ctx.input_count(), ctx.output_count());
  REEF_ASSIGN_OR_RETURN(const std::int32_t body, subgraph_attribute(ctx, "body_subgraph_index"));
  REEF_ASSIGN_OR_RETURN(const std::vector<const Tensor*> arguments, call_arguments(ctx, 0));
  REEF_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, ctx.environment()->infer_subgraph(body, arguments));
  for (int i = 0; i < ctx.output_count(); ++i) {
    if (static_cast<int>(shapes.size()) != ctx.output_count() || shapes[at(i)] != ctx.input(i).shape) {
      return make_error(StatusCode::kDeferred, "the loop changes shapes");
    }
  }
  for (int i = 0; i < ctx.output_count(); ++i) ctx.set_output_shape(i, shapes[at(i)]);
  return ok_status();
}

Result<bool> goes_on(RunContext& run, std::int32_t condition, const std::vector<const Tensor*>& arguments) {
  std::vector<OwnedTensor> results;
  REEF_RETURN_IF_ERROR(run.environment()->run_subgraph(condition, arguments, results));
  REEF_REQUIRE(results.size() == 1 && results[0].type == DataType::kBool && results[0].data.size() == 1,
               "the condition subgraph must have one boolean result");
  return results[0].data[0] != std::byte{0};
}

Result<Kernel> while_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t condition, subgraph_attribute(ctx, "cond_subgraph_index"));
  REEF_ASSIGN_OR_RETURN(const std::int32_t body, subgraph_attribute(ctx, "body_subgraph_index"));
  return Kernel([=](RunContext& run) -> Status {
    REEF_ASSIGN_OR_RETURN(std::vector<const Tensor*> arguments, call_arguments(run, 0));
    std::vector<OwnedTensor> values;  // what the body gave last
    for (const Tensor* input : arguments) {
      values.push_back({input->type, input->shape, {input->data, input->data + input->bytes}});
    }
    for (;;) {
      const std::vector<Tensor> views = as_views(values);
      for (std::size_t i = 0; i < views.size(); ++i) arguments[i] = &views[i];
      REEF_ASSIGN_OR_RETURN(const bool more, goes_on(run, condition, arguments));
      if (!more) break;
      if (run.environment()->threads().past_deadline()) {
        return make_error(StatusCode::kResourceExhausted, "the time limit has passed inside a loop");
      }
      std::vector<OwnedTensor> results;
      REEF_RETURN_IF_ERROR(run.environment()->run_subgraph(body, arguments, results));
      REEF_REQUIRE(results.size() == values.size(), "the body has {} results for {} loop values", results.size(),
                   values.size());
      values = std::move(results);
    }
    return store_results(run, values);
  });
}

}  // namespace

constinit const OpDef while_op =
    define({.name = name_of(Op::WHILE),
            .summary = "Repeats a subgraph while a condition holds.",
            .inputs = {0, kAnyNumber},
            .outputs = {0, kAnyNumber},
            .attributes = kWhileAttributes,
            .types = "operands of any type with a fixed element size",
            .has_state = true,
            .infer = while_infer,
            .prepare = while_prepare,
            .chip = {.instead = "Unroll the loop; Keras does so for recurrent layers with unroll=True."}});

}  // namespace reef::ops

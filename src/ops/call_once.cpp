// SPDX-License-Identifier: Apache-2.0
// CALL_ONCE: runs an initialization subgraph the first time it is reached in an interpreter's life.
#include "ops/op_def.h"
#include "ops/subgraph_call.h"

namespace reef::ops {
namespace {

constexpr AttributeDoc kCallOnceAttributes[] = {
    {"init_subgraph_index", "subgraph to run; it has no inputs and no outputs"}};

Status call_once_infer(InferContext&) { return ok_status(); }

Result<Kernel> call_once_prepare(PrepareContext& ctx) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t subgraph, subgraph_attribute(ctx, "init_subgraph_index"));
  return Kernel([subgraph](RunContext& run) -> Status {
    if (!run.environment()->first_use_of(subgraph)) return ok_status();
    std::vector<OwnedTensor> results;
    return run.environment()->run_subgraph(subgraph, {}, results);
  });
}

}  // namespace

constinit const OpDef call_once_op = define({.name = name_of(Op::CALL_ONCE),
                                             .summary = "Runs an initialization subgraph once.",
                                             .inputs = {0, 0},
                                             .outputs = {0, 0},
                                             .attributes = kCallOnceAttributes,
                                             .types = "no operands",
                                             .has_state = true,
                                             .infer = call_once_infer,
                                             .prepare = call_once_prepare,
                                             .chip = {.instead = "Freeze variables before converting the model."}});

}  // namespace reef::ops

// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "lower/builder.h"
#include "lower/transfers.h"

namespace reef::lower {
namespace {

Status lower_op(Builder& builder, std::int32_t index) {
  const ir::Operator& op = builder.op(index);
  const OpLowering lowering = find_lowering(op.type);
  if (lowering == nullptr) return unsupported("code for this operator is not generated yet");
  REEF_REQUIRE(!op.outputs.empty(), "the operator has no result");
  return lowering(builder, index);
}

std::string place_of(const Builder& builder, std::int32_t op) {
  return fmt::format("op {} {}", op, builder.op(op).type);
}

// All operators in order; goes on behind one that there is no code for, to find the others.
Status lower_ops(Builder& builder, const std::vector<std::int32_t>& ops, std::vector<RefusedOp>& refused) {
  Status first = ok_status();
  std::set<std::int32_t> missing;  // tensors that are not there because an operator was refused
  for (const std::int32_t index : ops) {
    const ir::Operator& op = builder.op(index);
    const bool lacks_operand =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) { return missing.contains(t); });
    if (!lacks_operand) {
      const Status status = lower_op(builder, index);
      if (status.ok()) continue;
      if (status.code() != StatusCode::kUnsupported) return status.in(place_of(builder, index));
      if (first.ok()) first = status.in(place_of(builder, index));
      refused.push_back({index, status.message()});
    }
    missing.insert(op.outputs.begin(), op.outputs.end());
  }
  return first;
}

Result<tiled::TiledProgram> lower_part(Builder& builder, const std::vector<std::int32_t>& ops,
                                       const std::vector<std::int32_t>& inputs,
                                       const std::vector<std::int32_t>& outputs, std::vector<RefusedOp>& refused) {
  if (inputs.size() != 1) {
    return unsupported("the part has {} inputs; code for several inputs is not generated yet", inputs.size());
  }
  for (const std::int32_t tensor : inputs) REEF_RETURN_IF_ERROR(add_infeed(builder, tensor));
  REEF_RETURN_IF_ERROR(lower_ops(builder, ops, refused));
  if (builder.program().steps.size() == inputs.size()) return unsupported("there is no operator that computes");
  for (const std::int32_t tensor : outputs) REEF_RETURN_IF_ERROR(add_outfeed(builder, tensor));
  std::int32_t at = -1;
  auto program = std::move(builder).finish(at);
  if (!program.ok() && at >= 0) {
    if (program.status().code() == StatusCode::kUnsupported) refused.push_back({at, program.status().message()});
    return program.status().in(place_of(builder, at));
  }
  return program;
}

}  // namespace

Result<tiled::TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                                  const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                                  const LowerOptions& options) {
  Builder builder(model, ops);
  builder.program().level = options.level;
  std::vector<RefusedOp> refused;
  auto program = lower_part(builder, ops, inputs, outputs, refused);
  if (options.refused != nullptr) *options.refused = std::move(refused);
  return program;
}

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

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

}  // namespace

Result<tiled::TiledProgram> lower(const ir::Model& model, const std::vector<std::int32_t>& ops,
                                  const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& outputs,
                                  const LowerOptions& options) {
  if (inputs.size() != 1) {
    return unsupported("the part has {} inputs; code for several inputs is not generated yet", inputs.size());
  }
  Builder builder(model, ops);
  builder.program().level = options.level;
  for (const std::int32_t tensor : inputs) REEF_RETURN_IF_ERROR(add_infeed(builder, tensor));
  for (const std::int32_t op : ops) {
    REEF_RETURN_IF_ERROR(lower_op(builder, op).in(fmt::format("op {} {}", op, builder.op(op).type)));
  }
  if (builder.program().steps.size() == inputs.size()) return unsupported("there is no operator that computes");
  for (const std::int32_t tensor : outputs) REEF_RETURN_IF_ERROR(add_outfeed(builder, tensor));
  return std::move(builder).finish();
}

}  // namespace reef::lower

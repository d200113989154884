// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <map>

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
  Builder builder(model, ops);
  builder.program().level = options.level;
  // Inputs come in where they are first needed: until then the chip's memory is free for other things.
  std::map<std::int32_t, std::int32_t> infeeds;  // by tensor: the step
  const auto feed = [&](std::int32_t tensor) -> Status {
    if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end() || infeeds.contains(tensor)) return ok_status();
    REEF_ASSIGN_OR_RETURN(infeeds[tensor], add_infeed(builder, tensor));
    return ok_status();
  };
  for (const std::int32_t op : ops) {
    for (const std::int32_t tensor : builder.op(op).inputs) REEF_RETURN_IF_ERROR(feed(tensor));
    REEF_RETURN_IF_ERROR(lower_op(builder, op).in(fmt::format("op {} {}", op, builder.op(op).type)));
  }
  for (const std::int32_t tensor : inputs) {
    REEF_RETURN_IF_ERROR(feed(tensor));
    builder.program().inputs.push_back(infeeds.at(tensor));
  }
  for (const std::int32_t tensor : outputs) REEF_RETURN_IF_ERROR(add_outfeed(builder, tensor));
  return std::move(builder).finish();
}

}  // namespace reef::lower

// SPDX-License-Identifier: Apache-2.0
#include "lower/lower.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "lower/builder.h"
#include "lower/transfers.h"

namespace reef::lower {
namespace {

// Inputs of the part, each of which comes in where it is first needed: until then the memory is free for other things.
class Inputs {
 public:
  explicit Inputs(const std::vector<std::int32_t>& tensors) : tensors_(tensors) {}

  // Brings the tensor in if it is an input that is not there yet.
  Status feed(Builder& builder, std::int32_t tensor) {
    const bool is_input = std::find(tensors_.begin(), tensors_.end(), tensor) != tensors_.end();
    if (!is_input || infeeds_.contains(tensor)) return ok_status();
    REEF_ASSIGN_OR_RETURN(infeeds_[tensor], add_infeed(builder, tensor));
    return ok_status();
  }
  // Those that no operator reads too; then the order of the custom op's operands.
  Status feed_all(Builder& builder) {
    for (const std::int32_t tensor : tensors_) {
      REEF_RETURN_IF_ERROR(feed(builder, tensor));
      builder.program().inputs.push_back(infeeds_.at(tensor));
    }
    return ok_status();
  }

 private:
  const std::vector<std::int32_t>& tensors_;
  std::map<std::int32_t, std::int32_t> infeeds_;  // by tensor: the step
};

Status lower_op(Builder& builder, Inputs& inputs, std::int32_t index) {
  const ir::Operator& op = builder.op(index);
  const OpLowering lowering = find_lowering(op.type);
  if (lowering == nullptr) return unsupported("code for this operator is not generated yet");
  REEF_REQUIRE(!op.outputs.empty(), "the operator has no result");
  for (const std::int32_t tensor : op.inputs) REEF_RETURN_IF_ERROR(inputs.feed(builder, tensor));
  builder.begin_op(index);
  return lowering(builder, index);
}

std::string place_of(const Builder& builder, std::int32_t op) {
  return fmt::format("op {} {}", op, builder.op(op).type);
}

// All operators in order; goes on behind one that there is no code for, to find the others.
Status lower_ops(Builder& builder, Inputs& inputs, const std::vector<std::int32_t>& ops,
                 std::vector<RefusedOp>& refused) {
  Status first = ok_status();
  std::set<std::int32_t> missing;  // tensors that are not there because an operator was refused
  for (const std::int32_t index : ops) {
    const ir::Operator& op = builder.op(index);
    const bool lacks_operand =
        std::any_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t t) { return missing.contains(t); });
    if (!lacks_operand) {
      const Status status = lower_op(builder, inputs, index);
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
  Inputs infeeds(inputs);
  REEF_RETURN_IF_ERROR(lower_ops(builder, infeeds, ops, refused));
  REEF_RETURN_IF_ERROR(infeeds.feed_all(builder));
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

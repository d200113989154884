// SPDX-License-Identifier: Apache-2.0
// RESHAPE, SQUEEZE, EXPAND_DIMS: another shape for the same elements. No work of their own: the result is the operand's
// tiled tensor, in whatever layout it has. Readers that need another one ask for it (Builder::grid, vector, copies).
// Only at -O0, images that become vectors are moved at once, as in Google's programs (reflow.cpp).
#include "ir/describe.h"
#include "lower/lowerings.h"
#include "lower/shared_steps.h"
#include "ops/registry.h"

namespace reef::lower {

bool keeps_elements(const Builder& builder, const ir::Operator& op) {
  const bool reshapes = ops::has_same_bytes(op);
  if ((!reshapes && op.type != Op::QUANTIZE) || op.inputs.empty() || op.inputs[0] < 0 || op.outputs.empty())
    return false;
  const ir::Tensor& from = builder.source(op.inputs[0]);
  const ir::Tensor& to = builder.source(op.outputs[0]);
  if (!from.shape.is_usable() || !to.shape.is_usable() || from.shape.elements() != to.shape.elements()) return false;
  const auto same = same_quantization(from, to);
  return same.ok() && *same;
}

Status lower_reshape(Builder& builder, std::int32_t op) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, builder.operand(op, 0));
  const std::int32_t to = builder.op(op).outputs[0];
  if (!keeps_elements(builder, builder.op(op))) {
    return unsupported("'{}' and '{}' differ in size or quantization", ir::describe_name(builder.source(from).name),
                       ir::describe_name(builder.source(to).name));
  }
  REEF_ASSIGN_OR_RETURN(const bool moved, reflow_to_vector(builder, op, from, to));
  if (moved) return ok_status();
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, builder.any_layout(from));
  builder.set_value(to, {tensor, {}});
  return ok_status();
}

}  // namespace reef::lower

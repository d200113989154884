// SPDX-License-Identifier: Apache-2.0
// Pooling with a fused activation does not map; pooling and then the activation does, and clamps the same numbers.
#include <array>
#include <utility>

#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

constexpr std::array<std::string_view, 3> kActivations = {"RELU", "RELU6", "RELU_N1_TO_1"};

bool at(GraphEdit& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  if ((op.type != "AVERAGE_POOL_2D" && op.type != "MAX_POOL_2D") || !edit.is_sound(index)) return false;
  const std::string activation(op.attributes.get_enum("fused_activation_function"));
  if (std::find(kActivations.begin(), kActivations.end(), activation) == kActivations.end()) return false;
  const std::int32_t y = op.outputs[0];
  const auto affine = edit.affine(y);
  if (!affine || edit.fits(index)) return false;
  OpList list(edit, edit.tensor(y).name);
  op.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t pooled = list.tensor_like(y, edit.shape(y));
  list.add(op.type, op.options_type, op.attributes, op.inputs, {pooled}, affine->type);
  list.last().version = op.version;
  list.unary(activation, pooled, *affine, y);
  return edit.commit(index, list.take(), fmt::format("{} and {}", op.type, activation));
}

}  // namespace

extern const Rewrite fused_activation_rewrite;
constinit const Rewrite fused_activation_rewrite = {
    .info = {.name = "fused-activation",
             .summary = "An activation fused into AVERAGE_POOL_2D or MAX_POOL_2D becomes an operator of its own.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

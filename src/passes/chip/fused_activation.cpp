// SPDX-License-Identifier: Apache-2.0
// Pooling with a fused activation does not map, nor does TRANSPOSE_CONV, which has them from version 4 on; the same
// without, and then the activation, does, and clamps the same numbers. All operators of a type have the version of the
// newest among them, so that a TRANSPOSE_CONV without activation is mended by its older version alone.
#include <algorithm>
#include <array>

#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::array<Op, 3> kActivations = {Op::RELU, Op::RELU6, Op::RELU_N1_TO_1};
constexpr std::int32_t kPlainTransposeConv = 3;  // the newest version without activations

bool fused_activation_at(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const bool is_transposed = op.type == Op::TRANSPOSE_CONV;
  if ((op.type != Op::AVERAGE_POOL_2D && op.type != Op::MAX_POOL_2D && !is_transposed) || !edit.is_sound(index))
    return false;
  const std::string activation(op.attributes.get_enum("fused_activation_function", "NONE"));
  const bool has_activation = std::find(kActivations.begin(), kActivations.end(), activation) != kActivations.end();
  if (!has_activation && (!is_transposed || activation != "NONE" || op.version <= kPlainTransposeConv)) return false;
  const std::int32_t y = op.outputs[0];
  const auto affine = edit.affine(y);
  if (!affine || edit.fits(index)) return false;
  OpList list(edit, edit.tensor(y).name);
  op.attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t plain = has_activation ? list.tensor_like(y, edit.shape(y)) : y;
  list.add(op.type, op.options_type, op.attributes, op.inputs, {plain}, affine->type);
  list.last().version = is_transposed ? std::min(op.version, kPlainTransposeConv) : op.version;
  if (!has_activation) return edit.commit(index, list.take(), "an older version of it, which does the same");
  list.unary(activation, plain, *affine, y);
  return edit.commit(index, list.take(), fmt::format("{} and {}", op.type, activation));
}

}  // namespace

constinit const Pass fused_activation_chip_pass = {
    .name = "fused-activation",
    .summary =
        "An activation fused into AVERAGE_POOL_2D, MAX_POOL_2D or TRANSPOSE_CONV becomes an operator of its "
        "own.",
    .at_on_chip = fused_activation_at};

}  // namespace reef::passes

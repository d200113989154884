// SPDX-License-Identifier: Apache-2.0
// SQUEEZE and EXPAND_DIMS are reshapes; runtimes below 13 know only RESHAPE (and some forms of SQUEEZE).
#include "passes/chip/op_list.h"
#include "passes/chip/rewrite_def.h"

namespace reef::rewrite {
namespace {

// 8-bit tensors of one scale; others, which runtimes without all of TFLite's types may want so, with all they have.
bool keeps_values(const GraphEdit& edit, std::int32_t x, std::int32_t y) {
  if (ir::is_integer_8(edit.tensor(x).type)) return edit.affine(x) && edit.same_quantization(x, y);
  return edit.tensor(x).type == edit.tensor(y).type && edit.tensor(x).quantization == edit.tensor(y).quantization;
}

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if ((op.type != "SQUEEZE" && op.type != "EXPAND_DIMS") || !edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  if (!keeps_values(edit, x, y) || edit.fits(index)) return false;
  if (edit.shape(x).elements() != edit.shape(y).elements()) return false;
  OpList list(edit, edit.tensor(y).name);
  list.reshape(x, edit.shape(y), y);
  return edit.commit(index, list.take(), "RESHAPE");
}

}  // namespace

extern const Rewrite squeeze_rewrite;
constinit const Rewrite squeeze_rewrite = {
    .info = {.name = "squeeze",
             .summary = "SQUEEZE and EXPAND_DIMS that do not map become RESHAPE.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

// SPDX-License-Identifier: Apache-2.0
// CONCATENATION with constants: coordinates beside a map (CoordConv), a class token in front of the others. The chip
// joins constants only if they are zeros and with one tensor, so the constant becomes something that is computed: zero
// times a few elements of another operand, plus a bias for each element. The same bytes.
#include <algorithm>

#include "passes/pass.h"

namespace reef::passes {
namespace {

bool joined_constants_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::CONCATENATION || !edit.is_sound(index) || edit.fits(index)) return false;
  const std::int32_t y = op.outputs[0];
  const auto computed = std::find_if(op.inputs.begin(), op.inputs.end(), [&](std::int32_t input) {
    return edit.varies(input) && edit.affine(input) && edit.shape(input).rank() > 0;
  });
  if (computed == op.inputs.end() || !edit.affine(y)) return false;
  OpList list(edit, edit.tensor(y).name);
  std::vector<std::int32_t> inputs;
  for (const std::int32_t input : op.inputs) {
    inputs.push_back(edit.is_constant(input) ? list.constant(input, *computed) : input);
    if (inputs.back() < 0) return false;
  }
  if (inputs == op.inputs) return false;
  list.add(op.type, op.options_type, op.attributes, std::move(inputs), {y}, edit.tensor(y).type);
  list.last().version = op.version;
  return edit.commit(index, list.take(), "CONCATENATION of what is computed");
}

}  // namespace

constinit const Pass joined_constants_chip_pass = {
    .name = "joined-constants",
    .summary = "CONCATENATION with constants other than zeros: a 1x1 CONV_2D with weights of zero computes them.",
    .at_on_chip = joined_constants_at};

}  // namespace reef::passes

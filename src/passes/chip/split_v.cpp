// SPDX-License-Identifier: Apache-2.0
// SPLIT_V: equal pieces are a SPLIT, others a STRIDED_SLICE each.

#include "passes/pass.h"

namespace reef::passes {
namespace {

bool split_v_at(ChipGraph& edit, std::int32_t index) {
  if (edit.op(index).type != Op::SPLIT_V || !edit.is_sound(index)) return false;
  const ir::Operator op = edit.op(index);
  const std::int32_t x = op.inputs[0];
  const ir::Shape shape = edit.shape(x);
  const auto axis_value = edit.ints(op.inputs[2]);
  if (!axis_value || axis_value->size() != 1 || edit.fits(index)) return false;
  const std::int64_t wrapped = (*axis_value)[0] + ((*axis_value)[0] < 0 ? shape.rank() : 0);
  if (wrapped < 0 || wrapped >= shape.rank()) return false;
  const int axis = static_cast<int>(wrapped);
  // The outputs say where the cuts are; sizes in the operand may be -1.
  std::int32_t begin = 0;
  bool equal = true;
  for (const std::int32_t output : op.outputs) {
    ir::Shape piece = edit.shape(output);
    if (piece.rank() != shape.rank() || !edit.same_quantization(x, output)) return false;
    equal = equal && piece[axis] == edit.shape(op.outputs[0])[axis];
    begin += piece[axis];
    piece[axis] = shape[axis];
    if (piece != shape) return false;
  }
  const auto sizes = edit.ints(op.inputs[1]);
  if (begin != shape[axis] || !sizes || sizes->size() != op.outputs.size()) return false;
  for (std::size_t i = 0; i < sizes->size(); ++i) {
    if ((*sizes)[i] != -1 && (*sizes)[i] != edit.shape(op.outputs[i])[axis]) return false;
  }
  const std::string name = edit.tensor(op.outputs[0]).name;
  if (equal) {
    OpList list(edit, name);
    list.split(x, axis, static_cast<int>(op.outputs.size()), op.outputs);
    if (edit.commit(index, list.take(), "SPLIT")) return true;
  }
  OpList list(edit, name);
  begin = 0;
  for (const std::int32_t output : op.outputs) {
    const std::int32_t size = edit.shape(output)[axis];
    list.slice(x, axis, begin, size, output);
    begin += size;
  }
  return edit.commit(index, list.take(), fmt::format("{} STRIDED_SLICE", op.outputs.size()));
}

}  // namespace

constinit const Pass split_v_chip_pass = {
    .name = "split-v",
    .summary = "SPLIT_V becomes SPLIT where the pieces are equal, else a STRIDED_SLICE for each.",
    .at_on_chip = split_v_at};

}  // namespace reef::passes

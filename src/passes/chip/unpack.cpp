// SPDX-License-Identifier: Apache-2.0
// UNPACK is a STRIDED_SLICE and a RESHAPE for each piece; PACK, where it does not map, the reverse.
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostUnpacked = 256;

std::optional<int> axis_of(const ir::Operator& op, int rank) {
  const std::int64_t axis = op.attributes.get_int("axis") + (op.attributes.get_int("axis") < 0 ? rank : 0);
  if (axis < 0 || axis >= rank) return {};
  return static_cast<int>(axis);
}

// The shape without dimension `axis`, which is along what pieces are counted.
bool is_piece(const ChipGraph& edit, std::int32_t piece, std::int32_t whole, int axis) {
  std::vector<std::int32_t> dims = edit.shape(whole).dims();
  dims.erase(dims.begin() + axis);
  return edit.shape(piece) == ir::Shape(dims) && edit.same_quantization(piece, whole);
}

bool unpack(ChipGraph& edit, std::int32_t index, const ir::Operator& op) {
  const std::int32_t x = op.inputs[0];
  const ir::Shape shape = edit.shape(x);
  const auto axis = axis_of(op, shape.rank());
  if (!axis || shape[*axis] != static_cast<std::int32_t>(op.outputs.size())) return false;
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  for (std::size_t i = 0; i < op.outputs.size(); ++i) {
    if (!is_piece(edit, op.outputs[i], x, *axis)) return false;
    list.reshape(list.slice(x, *axis, static_cast<std::int32_t>(i), 1), edit.shape(op.outputs[i]), op.outputs[i]);
  }
  return edit.commit(index, list.take(), fmt::format("{} STRIDED_SLICE and RESHAPE", op.outputs.size()));
}

bool pack(ChipGraph& edit, std::int32_t index, const ir::Operator& op) {
  const std::int32_t y = op.outputs[0];
  ir::Shape shape = edit.shape(y);
  const auto axis = axis_of(op, shape.rank());
  if (!axis || shape[*axis] != static_cast<std::int32_t>(op.inputs.size())) return false;
  shape[*axis] = 1;
  OpList list(edit, edit.tensor(y).name);
  std::vector<std::int32_t> parts;
  for (const std::int32_t input : op.inputs) {
    if (edit.is_constant(input) || !is_piece(edit, input, y, *axis)) return false;
    parts.push_back(list.reshape(input, shape));
  }
  list.concatenation(parts, *axis, y);
  return edit.commit(index, list.take(), fmt::format("{} RESHAPE and CONCATENATION", op.inputs.size()));
}

bool unpack_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if ((op.type != Op::UNPACK && op.type != Op::PACK) || !edit.is_sound(index)) return false;
  if (op.outputs.size() > kMostUnpacked || op.inputs.size() > kMostUnpacked || op.inputs.empty()) return false;
  if (!ir::is_integer_8(edit.tensor(op.outputs[0]).type) || edit.fits(index)) return false;
  return op.type == Op::UNPACK ? unpack(edit, index, op) : pack(edit, index, op);
}

}  // namespace

constinit const Pass unpack_chip_pass = {
    .name = "unpack",
    .summary = "UNPACK becomes STRIDED_SLICE and RESHAPE; PACK that does not map, RESHAPE and CONCATENATION.",
    .at_on_chip = unpack_at};

}  // namespace reef::passes

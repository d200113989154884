// SPDX-License-Identifier: Apache-2.0
// PADV2 that fills with the number that stores zero is a PAD, which fills with just that. With another number it is a
// CONCATENATION with constants (joined_constants.cpp), one for each dimension that is padded.
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int64_t kMostPadded = 1 << 16;  // of a constant that is joined

bool join(ChipGraph& edit, std::int32_t index, const Affine8& affine, std::int32_t q) {
  const ir::Operator op = edit.op(index);
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const auto amounts = edit.ints(op.inputs[1]);
  ir::Shape shape = edit.shape(x);
  if (!amounts || static_cast<int>(amounts->size()) != 2 * shape.rank()) return false;
  OpList list(edit, edit.tensor(y).name);
  std::int32_t current = x;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    std::vector<std::int32_t> parts;
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const std::int64_t amount = (*amounts)[2 * static_cast<std::size_t>(axis) + side];
      if (side == 1) parts.push_back(current);
      if (amount == 0) continue;
      ir::Shape border = shape;
      border[axis] = 1;
      if (amount < 0 || amount > kMostPadded || border.elements() * amount > kMostPadded) return false;
      border[axis] = static_cast<std::int32_t>(amount);
      parts.push_back(list.filled(border, affine, q));
    }
    if (parts.size() > 1) current = list.concatenation(parts, axis);
    shape = edit.shape(current);
  }
  if (shape != edit.shape(y) || list.size() == 0) return false;
  list.last().outputs = {y};
  return edit.commit(index, list.take(), "CONCATENATION with constants", 0, Op::CONCATENATION);
}

bool pad_v2_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::PADV2 || !edit.is_sound(index) || op.inputs.size() != 3 || edit.fits(index)) return false;
  const std::int32_t y = op.outputs[0], filling = op.inputs[2];
  const auto in = edit.affine(op.inputs[0]), out = edit.affine(y);
  if (!in || !out || *in != *out || !edit.is_constant(op.inputs[1]) || !edit.is_constant(filling)) return false;
  const Bytes& value = ir::constant_data(edit.model(), edit.tensor(filling));
  if (value.size() != 1 || edit.tensor(filling).type != out->type) return false;
  const std::int32_t q = out->type == ir::DataType::kInt8 ? static_cast<std::int8_t>(value.data()[0]) : value.data()[0];
  if (q != out->zero_point) return join(edit, index, *out, q);
  OpList list(edit, edit.tensor(y).name);
  list.add(Op::PAD, "PadOptions", {}, {op.inputs[0], op.inputs[1]}, {y}, out->type);
  return edit.commit(index, list.take(), "PAD");
}

}  // namespace

constinit const Pass pad_v2_chip_pass = {
    .name = "pad-v2",
    .summary = "PADV2 that fills with zero becomes PAD, with another number CONCATENATION with constants.",
    .at_on_chip = pad_v2_at};

}  // namespace reef::passes

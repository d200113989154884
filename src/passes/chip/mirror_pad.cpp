// SPDX-License-Identifier: Apache-2.0
// MIRROR_PAD by a few elements: a slice for each mirrored row, joined by a CONCATENATION for each dimension.
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int64_t kMostMirroredRows = 16;  // on one side

bool mirror_pad_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::MIRROR_PAD || !edit.is_sound(index) || edit.fits(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x);
  const auto paddings = edit.ints(op.inputs[1]);
  const std::string_view mode = op.attributes.get_enum("mode");
  if (!edit.affine(x) || !edit.same_quantization(x, y) || (mode != "REFLECT" && mode != "SYMMETRIC")) return false;
  if (!paddings || static_cast<int>(paddings->size()) != 2 * shape.rank()) return false;
  const std::int32_t offset = mode == "REFLECT" ? 1 : 0;  // whether the edge itself is left out
  int padded = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t before = (*paddings)[2 * static_cast<std::size_t>(axis)];
    const std::int64_t after = (*paddings)[2 * static_cast<std::size_t>(axis) + 1];
    const std::int64_t most = std::min<std::int64_t>(kMostMirroredRows, shape[axis] - offset);
    if (before < 0 || after < 0 || before > most || after > most) return false;
    if (edit.shape(y).rank() != shape.rank() || edit.shape(y)[axis] != shape[axis] + before + after) return false;
    padded += before + after > 0 ? 1 : 0;
  }
  OpList list(edit, edit.tensor(y).name);
  std::int32_t current = x;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto before = static_cast<std::int32_t>((*paddings)[2 * static_cast<std::size_t>(axis)]);
    const auto after = static_cast<std::int32_t>((*paddings)[2 * static_cast<std::size_t>(axis) + 1]);
    if (before + after == 0) continue;
    std::vector<std::int32_t> parts;
    for (std::int32_t i = before; i-- > 0;) parts.push_back(list.slice(current, axis, i + offset, 1));
    parts.push_back(current);
    for (std::int32_t i = 0; i < after; ++i)
      parts.push_back(list.slice(current, axis, shape[axis] - 1 - offset - i, 1));
    current = list.concatenation(parts, axis, --padded == 0 ? y : kNew);
  }
  return current == y && edit.commit(index, list.take(), "slices and CONCATENATION");
}

}  // namespace

constinit const Pass mirror_pad_chip_pass = {
    .name = "mirror-pad",
    .summary = "MIRROR_PAD by up to 16 elements a side becomes slices and CONCATENATION.",
    .at_on_chip = mirror_pad_at};

}  // namespace reef::passes

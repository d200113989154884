// SPDX-License-Identifier: Apache-2.0
// BROADCAST_TO of a known size is TILE.
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool broadcast_to_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::BROADCAST_TO || !edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x), result = edit.shape(y);
  if (!edit.affine(x) || !edit.same_quantization(x, y) || shape.rank() > result.rank() || result.rank() == 0)
    return false;
  std::vector<std::int32_t> dims(static_cast<std::size_t>(result.rank() - shape.rank()), 1);
  dims.insert(dims.end(), shape.begin(), shape.end());
  std::vector<std::int64_t> multiples;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const std::int32_t size = result[static_cast<int>(d)];
    if (dims[d] != size && dims[d] != 1) return false;
    multiples.push_back(dims[d] == size ? 1 : size);
  }
  if (edit.fits(index)) return false;
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t source = shape.rank() == result.rank() ? x : list.reshape(x, ir::Shape(dims));
  list.tile(source, multiples, y);
  return edit.commit(index, list.take(), "TILE");
}

}  // namespace

constinit const Pass broadcast_to_chip_pass = {
    .name = "broadcast-to", .summary = "BROADCAST_TO of a known size becomes TILE.", .at_on_chip = broadcast_to_at};

}  // namespace reef::passes

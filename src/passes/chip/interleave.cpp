// SPDX-License-Identifier: Apache-2.0
// Channels of several tensors in turn: CONCATENATION along a last dimension of its own, [..., n, 1] and [..., n, 1] to
// [..., n, 2], which a RESHAPE then makes one of. So exporters write stack(..., -1), as rotary positions have it.
//
// The tensors are joined along their channels, and a 1x1 CONV_2D puts these into turn. Exact.
#include <algorithm>

#include "passes/pass.h"

namespace reef::passes {
namespace {

bool interleave_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::CONCATENATION || !edit.is_sound(index) || op.inputs.size() < 2) return false;
  const ir::Shape to = edit.shape(op.outputs[0]), one = edit.shape(op.inputs[0]);
  const int rank = to.rank();
  const std::int64_t axis = op.attributes.get_int("axis");
  if (rank < 4 || (axis != -1 && axis != rank - 1)) return false;
  const auto count = static_cast<std::int32_t>(op.inputs.size());
  const bool are_alike = std::all_of(op.inputs.begin(), op.inputs.end(), [&](std::int32_t x) {
    return edit.shape(x) == one && edit.same_quantization(x, op.outputs[0]) && !edit.is_constant(x);
  });
  if (!are_alike || one.last() != 1 || to.last() != count || !edit.affine(op.outputs[0]) || edit.fits(index)) {
    return false;
  }
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return false;
  const std::int32_t channels = one.last(1), width = one.last(2);
  const auto height = static_cast<std::int32_t>(one.product(0, rank - 3));
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  std::vector<std::int32_t> parts, order;
  for (const std::int32_t x : op.inputs) parts.push_back(list.reshape(x, {1, height, width, channels}));
  for (std::int32_t c = 0; c < channels; ++c) {
    for (std::int32_t part = 0; part < count; ++part) order.push_back(part * channels + c);
  }
  const std::int32_t picked = list.channels_picked(list.concatenation(parts, 3), order);
  if (picked < 0) return false;
  list.reshape(picked, to, op.outputs[0]);
  return edit.commit(index, list.take(), "CONCATENATION of channels and a 1x1 CONV_2D that puts them into turn", 0,
                     Op::RESHAPE);
}

}  // namespace

constinit const Pass interleave_chip_pass = {
    .name = "interleave",
    .summary =
        "CONCATENATION along a new last dimension becomes one of channels, and a 1x1 CONV_2D that puts "
        "them into turn.",
    .at_on_chip = interleave_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// RESHAPE and TRANSPOSE of more dimensions or elements than Google's compilers take: windows of Swin, heads of several
// images, [windows, tokens, 3, heads, channels].
//
// Reef's code moves elements from anywhere to anywhere, whatever the dimensions are called. The operators stay as they
// are, so that what runs on the CPU runs in any TFLite; they are marked (ops/own_code.h), and rules that are known of
// Google's compilers alone do not hold for them. Between them and what computes there are RESHAPEs to fewer dimensions.
#include "ops/own_code.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr int kMostDimensions = 6;                          // of TFLite's own TRANSPOSE
constexpr std::int64_t kMostMoved = std::int64_t{1} << 20;  // both sides of it fit into the tiles

bool own_movement_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if ((op.type != Op::RESHAPE && op.type != Op::TRANSPOSE) || !edit.is_sound(index) || op.outputs.size() != 1)
    return false;
  if (op.attributes.get_bool(ops::kOwnMovement) || edit.fits(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  if (!edit.varies(x) || !edit.affine(x) || !edit.same_quantization(x, y)) return false;
  const ir::Shape &from = edit.shape(x), &to = edit.shape(y);
  if (from.rank() > kMostDimensions || to.rank() > kMostDimensions || from.elements() != to.elements()) return false;
  if (from.elements() < 1 || from.elements() > kMostMoved) return false;
  ir::Operator marked = op;
  // TensorFlow's converter writes RESHAPE without options, and attributes belong to some.
  if (marked.options_type.empty()) marked.options_type = op.type == Op::RESHAPE ? "ReshapeOptions" : "TransposeOptions";
  marked.attributes.set(ops::kOwnMovement, true);
  return edit.commit(index, {std::move(marked)}, "movement of Reef's own");
}

}  // namespace

constinit const Pass own_movement_chip_pass = {
    .name = "own-movement",
    .summary =
        "RESHAPE and TRANSPOSE of more dimensions or elements than Google's compilers take are left to "
        "Reef's own code.",
    .at_on_chip = own_movement_at};

}  // namespace reef::passes

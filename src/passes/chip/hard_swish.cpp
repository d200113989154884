// SPDX-License-Identifier: Apache-2.0
// HARD_SWISH: x * clamp(x / 6 + 1 / 2, 0, 1), a depthwise convolution whose saturation is the clamp, and a product.
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool at(ChipGraph& edit, std::int32_t index) {
  if (edit.op(index).type != Op::HARD_SWISH || !edit.is_sound(index)) return false;
  const std::int32_t x = edit.op(index).inputs[0], y = edit.op(index).outputs[0];
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type || edit.fits(index)) return false;
  const auto table = tabulate(edit, {&index, 1}, x, y);
  if (!table) return false;
  const Candidate candidate = hard_swish_candidate(*out);
  return replace_function(edit, index, x, y, *table, {&candidate, 1});
}

}  // namespace

constinit const Pass hard_swish_chip_pass = {
    .name = "hard-swish",
    .summary = "HARD_SWISH becomes a 1x1 DEPTHWISE_CONV_2D that saturates at 0 and 1, and a MUL.",
    .safety = Safety::kRounding,
    .at_on_chip = at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// ELU: x above zero, exp(x) - 1 below; few straight pieces in 8 bits.
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool at(ChipGraph& edit, std::int32_t index) {
  if (edit.op(index).type != Op::ELU || !edit.is_sound(index)) return false;
  const std::int32_t x = edit.op(index).inputs[0], y = edit.op(index).outputs[0];
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type || edit.fits(index)) return false;
  const auto table = tabulate(edit, {&index, 1}, x, y);
  if (!table) return false;
  return replace_function(edit, index, x, y, *table, {});
}

}  // namespace

constinit const Pass elu_chip_pass = {
    .name = "elu",
    .summary = "ELU becomes a sum of ramps: 1x1 DEPTHWISE_CONV_2D that saturate at both ends, and ADD.",
    .safety = Safety::kRounding,
    .at_on_chip = at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// GELU: x * sigmoid(1.702 x) where 8 bits cannot tell it from the real one, else a sum of ramps.
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool at(ChipGraph& edit, std::int32_t index) {
  if (edit.op(index).type != Op::GELU || !edit.is_sound(index)) return false;
  const std::int32_t x = edit.op(index).inputs[0], y = edit.op(index).outputs[0];
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type || edit.fits(index)) return false;
  const auto table = tabulate(edit, {&index, 1}, x, y);
  if (!table) return false;
  const std::vector<Candidate> candidates = {gelu_candidate(*in, *out), kinked_gelu_candidate(*in, *out)};
  return replace_function(edit, index, x, y, *table, candidates);
}

}  // namespace

constinit const Pass gelu_chip_pass = {
    .name = "gelu",
    .summary = "GELU becomes x * LOGISTIC(1.702 x) or a sum of ramps (see elu), whichever is within a step.",
    .safety = Safety::kRounding,
    .at_on_chip = at};

}  // namespace reef::passes

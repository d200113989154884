// SPDX-License-Identifier: Apache-2.0
// SiLU (swish, x * sigmoid(x)) in any form that does not map, such as one that passes through floating point, becomes
// the LOGISTIC and MUL that do. Recognized by its 256 values and not by its operators.
#include "passes/chip/unary_cone.h"
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool silu_at(ChipGraph& edit, std::int32_t index) {
  for (const Cone& cone : cones_ending_at(edit, index)) {
    const auto in = edit.affine(cone.x), out = edit.affine(cone.y);
    // One operator that is a SiLU does not exist; without this every HARD_SWISH would be asked.
    if (!in || !out || in->type != out->type || cone.ops.size() < 2) continue;
    const auto table = tabulate(edit, cone.ops, cone.x, cone.y);
    if (!table) continue;
    const Candidate candidate = silu_candidate(*out);
    if (differs_by(edit, *in, *out, candidate, *table) > kLargestDifference) continue;
    if (replace_function(edit, index, cone.x, cone.y, *table, {&candidate, 1})) return true;
  }
  return false;
}

}  // namespace

constinit const Pass silu_chip_pass = {
    .name = "silu",
    .summary = "x * sigmoid(x) in a form that does not map becomes LOGISTIC and MUL.",
    .safety = Safety::kRounding,
    .at_on_chip = silu_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// Unary operators that Google's compilers leave on the CPU (HARD_SWISH, ELU, EXP, LEAKY_RELU ...) in one pass of the
// chip, by an activation table that is fitted for the operator's scales.
//
// The operator stays as it is, so that what runs on the CPU runs in any TFLite; it is marked (ops/table_functions.h).
// The table's results are compared with TFLite's at all 256 values. Where it is a step off somewhere and operators of
// Google's compilers would not be, the operator is left to the rewrites behind this one.
#include "ops/table_functions.h"
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool by_table_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (op.inputs.size() != 1 || op.attributes.get_bool(ops::kByTable) || !ops::unary_function(op)) return false;
  if (!edit.is_sound(index) || edit.fits(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type) return false;
  const auto wanted = tabulate(edit, {&index, 1}, x, y);
  if (!wanted) return false;
  ir::Operator marked = op;
  marked.attributes.set(ops::kByTable, true);
  const numeric::TableFit fit = ops::table_fit(marked, chip_affine(*in), chip_affine(*out));
  const int difference = table_difference(fit, *in, *out, *wanted);
  if (fit.error > ops::kLargestTableError || difference > kLargestDifference) return false;
  if (others_are_closer(edit, *in, *out, *wanted, difference)) return false;
  return edit.commit(index, {std::move(marked)}, "one pass by a table", difference);
}

}  // namespace

constinit const Pass by_table_chip_pass = {
    .name = "by-table",
    .summary =
        "HARD_SWISH, ELU, EXP, LOG, LEAKY_RELU and other functions of one 8-bit tensor are computed in "
        "one pass of the chip by a table of their own; the model's operator stays.",
    .safety = Safety::kRounding,
    .at_on_chip = by_table_at};

}  // namespace reef::passes

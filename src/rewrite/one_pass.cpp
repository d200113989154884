// SPDX-License-Identifier: Apache-2.0
// SiLU (LOGISTIC and MUL of the same tensor) in one pass of the chip, by an activation table of its own.
//
// The operators stay as they are, so that what runs on the CPU runs in any TFLite; the MUL is marked
// (ops/table_functions.h), and the chip computes it from x alone. The result is rounded once instead of twice and is
// compared with TFLite's two operators at all 256 values.
#include <algorithm>
#include <cmath>

#include "ops/table_functions.h"
#include "rewrite/rewrite_def.h"
#include "rewrite/unary_function.h"

namespace reef::rewrite {
namespace {

ops::ChipAffine chip_affine(const Affine8& affine) { return {affine.scale, affine.zero_point - affine.lowest()}; }

// Which operand of a MUL is x where the other one is LOGISTIC of it; -1: none.
int silu_operand(const GraphEdit& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (op.type != "MUL" || !edit.is_sound(index) || op.inputs.size() != 2) return -1;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return -1;
  for (int k = 0; k < 2; ++k) {
    const std::int32_t x = op.inputs[static_cast<std::size_t>(k)], gate = op.inputs[static_cast<std::size_t>(1 - k)];
    const std::int32_t logistic = edit.producer(gate);
    if (logistic >= 0 && edit.op(logistic).type == "LOGISTIC" && edit.op(logistic).inputs[0] == x) return k;
  }
  return -1;
}

// Of the chip's results, by table, from TFLite's.
int largest_difference(const numeric::TableFit& fit, const Affine8& in, const Affine8& out, const Table& wanted) {
  int largest = 0;
  for (int code = 0; code < 256; ++code) {
    const float argument = static_cast<float>(code - chip_affine(in).zero_point) * in.scale;
    const std::int32_t chip = numeric::chip_round(fit.function.at(argument), chip_affine(out).zero_point, 255);
    largest = std::max(largest, std::abs(chip + out.lowest() - wanted[static_cast<std::size_t>(code)]));
  }
  return largest;
}

bool at(GraphEdit& edit, std::int32_t index) {
  const int operand = silu_operand(edit, index);
  if (operand < 0 || edit.op(index).attributes.get_int(ops::kSiluOperand, -1) >= 0 || !edit.fits(index)) return false;
  const std::int32_t x = edit.op(index).inputs[static_cast<std::size_t>(operand)], y = edit.op(index).outputs[0];
  const std::int32_t logistic = edit.producer(edit.op(index).inputs[static_cast<std::size_t>(1 - operand)]);
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type) return false;
  const std::array<std::int32_t, 2> both = {logistic, index};
  const auto table = tabulate(edit, both, x, y);
  if (!table) return false;
  ir::Operator marked = edit.op(index);
  marked.attributes.set(ops::kSiluOperand, std::int64_t{operand});
  const numeric::TableFit fit = ops::table_fit(marked, chip_affine(*in), chip_affine(*out));
  const int difference = largest_difference(fit, *in, *out, *table);
  if (fit.error > ops::kLargestTableError || difference > kLargestDifference) return false;
  return edit.commit(index, {std::move(marked)}, "one pass with the LOGISTIC before it", difference);
}

}  // namespace

extern const Rewrite one_pass_rewrite;
constinit const Rewrite one_pass_rewrite = {
    .info = {.name = "one-pass",
             .summary = "x * LOGISTIC(x) is computed in one pass of the chip by a table of its own; the model's "
                        "operators stay.",
             .safety = Safety::kRounding,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

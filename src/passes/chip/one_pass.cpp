// SPDX-License-Identifier: Apache-2.0
// SiLU (LOGISTIC and MUL of the same tensor) and a constant number divided by x in one pass of the chip, by an
// activation table of their own.
//
// The operators stay as they are, so that what runs on the CPU runs in any TFLite; the MUL or DIV is marked
// (ops/table_functions.h), and the chip computes it from x alone. The result is rounded once instead of twice and is
// compared with TFLite's two operators at all 256 values.
#include <algorithm>

#include "ops/table_functions.h"
#include "passes/chip/unary_function.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

// Which operand of a MUL is x where the other one is LOGISTIC of it; -1: none.
int silu_operand(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (op.type != Op::MUL || !edit.is_sound(index) || op.inputs.size() != 2) return -1;
  if (op.attributes.get_enum("fused_activation_function", "NONE") != "NONE") return -1;
  for (int k = 0; k < 2; ++k) {
    const std::int32_t x = op.inputs[at(k)], gate = op.inputs[at(1 - k)];
    const std::int32_t logistic = edit.producer(gate);
    if (logistic >= 0 && edit.op(logistic).type == Op::LOGISTIC && edit.op(logistic).inputs[0] == x) return k;
  }
  return -1;
}

// The number that a DIV divides by something computed; 0: it is no such DIV.
double numerator_of(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (op.type != Op::DIV || !edit.is_sound(index) || !edit.is_constant(op.inputs[0]) ||
      edit.is_constant(op.inputs[1]) || op.attributes.get_enum("fused_activation_function", "NONE") != "NONE" ||
      edit.shape(op.inputs[1]) != edit.shape(op.outputs[0])) {
    return 0;
  }
  const auto affine = edit.affine(op.inputs[0]);
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), edit.tensor(op.inputs[0])).span();
  if (!affine || data.empty() || !std::equal(data.begin() + 1, data.end(), data.begin())) return 0;
  const int code = affine->type == ir::DataType::kInt8 ? static_cast<std::int8_t>(data[0]) : data[0];
  return static_cast<double>(affine->scale) * (code - affine->zero_point);
}

// Where x is 0 TFLite refuses to divide, and nothing is compared.
bool mark_division(ChipGraph& edit, std::int32_t index, double numerator) {
  const std::int32_t x = edit.op(index).inputs[1], y = edit.op(index).outputs[0];
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type) return false;
  ir::Operator marked = edit.op(index);
  marked.attributes.set(ops::kNumerator, numerator);
  const numeric::TableFit fit = ops::table_fit(marked, chip_affine(*in), chip_affine(*out));
  if (fit.error > ops::kLargestTableError) return false;
  return edit.commit(index, {std::move(marked)}, "one pass by a table", 1);
}

bool one_pass_at(ChipGraph& edit, std::int32_t index) {
  if (const double numerator = numerator_of(edit, index); numerator != 0) {
    return edit.op(index).attributes.get_float(ops::kNumerator, 0) == 0 && mark_division(edit, index, numerator);
  }
  const int operand = silu_operand(edit, index);
  if (operand < 0 || edit.op(index).attributes.get_int(ops::kSiluOperand, -1) >= 0 || !edit.fits(index)) return false;
  const std::int32_t x = edit.op(index).inputs[at(operand)], y = edit.op(index).outputs[0];
  const std::int32_t logistic = edit.producer(edit.op(index).inputs[at(1 - operand)]);
  const auto in = edit.affine(x), out = edit.affine(y);
  if (!in || !out || in->type != out->type) return false;
  const std::array<std::int32_t, 2> both = {logistic, index};
  const auto table = tabulate(edit, both, x, y);
  if (!table) return false;
  ir::Operator marked = edit.op(index);
  marked.attributes.set(ops::kSiluOperand, std::int64_t{operand});
  const numeric::TableFit fit = ops::table_fit(marked, chip_affine(*in), chip_affine(*out));
  const int difference = table_difference(fit, *in, *out, *table);
  if (fit.error > ops::kLargestTableError || difference > kLargestDifference) return false;
  return edit.commit(index, {std::move(marked)}, "one pass with the LOGISTIC before it", difference);
}

}  // namespace

constinit const Pass one_pass_chip_pass = {
    .name = "one-pass",
    .summary =
        "x * LOGISTIC(x), and a number divided by x, are computed in one pass of the chip by a table of "
        "their own; the model's operators stay.",
    .safety = Safety::kRounding,
    .at_on_chip = one_pass_at};

}  // namespace reef::passes

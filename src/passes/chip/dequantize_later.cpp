// SPDX-License-Identifier: Apache-2.0
// Converters leave islands of floating point in quantized models: DEQUANTIZE, an operator that only moves elements, and
// QUANTIZE (an unrolled LSTM's first SPLIT, for one). Moving elements and dequantizing them can change places, to the
// bit; what is left, DEQUANTIZE and then QUANTIZE, is a function of one tensor, and goes with the rewrite `unary`.
#include <algorithm>
#include <array>
#include <utility>

#include "passes/pass.h"

namespace reef::passes {
namespace {

// Operators that move elements, and which of their inputs has them.
constexpr std::array<std::pair<Op, std::size_t>, 8> kMovements = {{{Op::EXPAND_DIMS, 0},
                                                                   {Op::RESHAPE, 0},
                                                                   {Op::SLICE, 0},
                                                                   {Op::SPLIT, 1},
                                                                   {Op::SQUEEZE, 0},
                                                                   {Op::STRIDED_SLICE, 0},
                                                                   {Op::TRANSPOSE, 0},
                                                                   {Op::UNPACK, 0}}};

// The 8-bit tensor behind a float one; -1: none.
std::int32_t source_of(const ChipGraph& edit, std::int32_t tensor) {
  if (tensor < 0 || edit.tensor(tensor).type != ir::DataType::kFloat32) return -1;
  const std::int32_t producer = edit.producer(tensor);
  if (producer < 0 || edit.op(producer).type != Op::DEQUANTIZE || !edit.is_sound(producer)) return -1;
  const std::int32_t source = edit.op(producer).inputs[0];
  return edit.affine(source) && edit.shape(source) == edit.shape(tensor) ? source : -1;
}

bool dequantize_later_at(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const auto movement =
      std::find_if(kMovements.begin(), kMovements.end(), [&](const auto& m) { return op.type == m.first; });
  if (movement == kMovements.end() || op.inputs.size() <= movement->second || !edit.is_sound(index)) return false;
  const std::int32_t source = source_of(edit, op.inputs[movement->second]);
  if (source < 0) return false;
  const ir::DataType type = edit.tensor(source).type;
  for (const std::int32_t output : op.outputs) {
    if (edit.tensor(output).type != ir::DataType::kFloat32) return false;
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  std::vector<std::int32_t> moved;
  for (const std::int32_t output : op.outputs) moved.push_back(list.tensor_like(source, edit.shape(output)));
  op.inputs[movement->second] = source;
  list.add(op.type, op.options_type, op.attributes, op.inputs, moved, type);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    list.add(Op::DEQUANTIZE, "DequantizeOptions", {}, {moved[i]}, {op.outputs[i]}, type);
  }
  return edit.commit(index, list.take(), fmt::format("{} of 8-bit numbers, then DEQUANTIZE", op.type), 0,
                     Op::DEQUANTIZE);
}

}  // namespace

constinit const Pass dequantize_later_chip_pass = {
    .name = "dequantize-later",
    .summary =
        "Where elements are dequantized and then moved (SPLIT, RESHAPE, TRANSPOSE ...), they are moved as 8-bit "
        "numbers and dequantized behind that.",
    .at_on_chip = dequantize_later_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// A QUANTIZE at a floating-point input and a DEQUANTIZE at a floating-point output run on the CPU. Without them the
// model's inputs and outputs are 8-bit numbers, which the caller must make and read by the scale and zero point that
// the tensors carry. That changes the interface, so it is done only when asked for.

#include "passes/pass.h"

namespace reef::passes {
namespace {

// All that reads the input is a QUANTIZE to 8 bits, each in the same way. Returns the first's result.
std::optional<std::int32_t> quantized_input(const ChipGraph& edit, std::int32_t input) {
  if (edit.tensor(input).type != ir::DataType::kFloat32 || edit.is_graph_output(input)) return {};
  std::optional<std::int32_t> first;
  for (const std::int32_t reader : edit.consumers(input)) {
    const ir::Operator& op = edit.op(reader);
    if (op.type != Op::QUANTIZE || op.outputs.size() != 1 || op.inputs.size() != 1) return {};
    if (!edit.affine(op.outputs[0]) || edit.shape(op.outputs[0]) != edit.shape(input)) return {};
    if (first && !edit.same_quantization(*first, op.outputs[0])) return {};
    if (!first) first = op.outputs[0];
  }
  return first;
}

bool strip_input(ChipGraph& edit, std::size_t place) {
  const std::int32_t input = edit.graph().inputs[place];
  const auto found = quantized_input(edit, input);
  if (!found) return false;
  const std::vector<std::int32_t> readers = edit.consumers(input);
  for (const std::int32_t reader : readers) edit.redirect(edit.op(reader).outputs[0], *found);
  edit.note_change(readers[0],
                   fmt::format("{} at input '{}' {}", edit.describe(readers[0]), edit.tensor(input).name,
                               edit.is_trial() ? "could be stripped" : "was stripped"),
                   edit.tensor(input).name);
  for (const std::int32_t reader : readers) edit.remove(reader);
  edit.set_graph_input(place, *found);
  edit.change_tensor(*found).name = edit.tensor(input).name;
  edit.remove_dead();
  return true;
}

bool strip_output(ChipGraph& edit, std::size_t place) {
  const std::int32_t output = edit.graph().outputs[place];
  const std::int32_t producer = edit.producer(output);
  if (producer < 0 || edit.op(producer).type != Op::DEQUANTIZE || edit.tensor(output).type != ir::DataType::kFloat32) {
    return false;
  }
  const std::int32_t stored = edit.op(producer).inputs[0];
  // A tensor is given out once, and an input or constant is not computed.
  if (!edit.affine(stored) || edit.is_graph_output(stored) || edit.producer(stored) < 0) return false;
  if (edit.shape(stored) != edit.shape(output)) return false;
  if (!edit.consumers(output).empty()) return false;
  edit.note_change(producer,
                   fmt::format("{} at an output {}", edit.describe(producer),
                               edit.is_trial() ? "could be stripped" : "was stripped"),
                   edit.tensor(output).name);
  edit.redirect(output, stored);
  edit.change_tensor(stored).name = edit.tensor(output).name;
  edit.forget();
  return true;  // the operator has no reader left and is swept up
}

bool io_whole(ChipGraph& edit) {
  bool changed = false;
  for (std::size_t i = 0; i < edit.graph().inputs.size(); ++i) changed = strip_input(edit, i) || changed;
  for (std::size_t i = 0; i < edit.graph().outputs.size(); ++i) changed = strip_output(edit, i) || changed;
  return changed;
}

}  // namespace

constinit const Pass io_chip_pass = {
    .name = "io",
    .summary =
        "QUANTIZE at floating-point inputs and DEQUANTIZE at floating-point outputs are stripped: the "
        "model then takes and gives 8-bit numbers.",
    .safety = Safety::kInterface,
    .on_by_default = false,
    .whole_on_chip = io_whole};

}  // namespace reef::passes

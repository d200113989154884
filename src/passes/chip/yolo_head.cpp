// SPDX-License-Identifier: Apache-2.0
// A large TRANSPOSE does not map, and strands all that follows it: the heads of YOLOv5, v8 and 11 above 192 pixels.
// Operators behind it mostly ignore the order of dimensions, so the TRANSPOSE is moved down, operator by operator,
// until it is small enough (a reduction on the way shrinks what it moves) or last, where it may run on the CPU.
#include "passes/chip/transpose_below.h"
#include "passes/chip/view.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool has_identity_order(const std::vector<int>& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

// The operators that replace `reader`, with transpositions of its results at the end.
std::vector<ir::Operator> lowered_ops(ChipGraph& edit, std::int32_t reader, std::int32_t tensor) {
  OpList list(edit, edit.tensor(edit.op(reader).outputs[0]).name);
  const auto lowered = lower_past(edit, list, reader, tensor);
  if (!lowered) return {};
  const std::vector<std::int32_t> outputs = edit.op(reader).outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (has_identity_order(lowered->permutation)) {
      list.reshape(lowered->results[i], edit.shape(outputs[i]), outputs[i]);
    } else {
      list.transpose(lowered->results[i], lowered->permutation, outputs[i]);
    }
  }
  return list.take();
}

bool yolo_head_at(ChipGraph& edit, std::int32_t index) {
  if (edit.op(index).type != Op::TRANSPOSE || !is_view_op(edit, index)) return false;
  const std::int32_t y = edit.op(index).outputs[0];
  if (!ir::is_integer_8(edit.tensor(y).type) || edit.is_graph_output(y) || edit.fits(index)) return false;
  // All readers must let it pass, or it would stay where it is.
  const std::vector<std::int32_t> readers = edit.consumers(y);
  for (const std::int32_t reader : readers) {
    if (lowered_ops(edit, reader, y).empty()) return false;
  }
  bool changed = false;
  for (std::size_t i = readers.size(); i-- > 0;) {  // from the back: indices before stay
    std::vector<ir::Operator> ops = lowered_ops(edit, readers[i], y);
    const std::string into = fmt::format("{} before the transposition", edit.op(readers[i]).type);
    changed = edit.commit(readers[i], std::move(ops), into, 0, Op::TRANSPOSE) || changed;
  }
  return changed;
}

}  // namespace

constinit const Pass yolo_head_chip_pass = {
    .name = "yolo-head",
    .summary =
        "A TRANSPOSE that is too large to map is moved down past the operators that follow it, until "
        "it is small enough or last.",
    .at_on_chip = yolo_head_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// SOFTMAX and TRANSPOSE of more elements than map, in pieces that do: rows of a softmax do not know of each other, and
// a transposition may be cut along any dimension.
//
// A TRANSPOSE that nothing follows on the chip is left: it is as well done by the CPU, in one go.
#include <algorithm>

#include "passes/chip/view.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostRowPieces = 16;
// The most elements of a TRANSPOSE that are known to map: larger pieces are not even tried.
constexpr std::int64_t kTransposedElements = 82944;

struct Cut {
  int axis = 0;         // of the input
  int result_axis = 0;  // of the output
};

// Along the longest dimension first. Rows of a softmax stay whole.
std::vector<Cut> cuts_of(const ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  const ir::Shape& shape = edit.shape(op.inputs[0]);
  const bool is_transpose = op.type == Op::TRANSPOSE;
  const std::vector<std::int64_t> order = is_transpose ? permutation_of(edit, index) : std::vector<std::int64_t>();
  std::vector<Cut> cuts;
  for (int axis = 0; axis < shape.rank() - (is_transpose ? 0 : 1); ++axis) {
    Cut cut{axis, axis};
    for (std::size_t i = 0; i < order.size(); ++i)
      cut.result_axis = order[i] == axis ? static_cast<int>(i) : cut.result_axis;
    if (shape[axis] > 1) cuts.push_back(cut);
  }
  std::stable_sort(cuts.begin(), cuts.end(), [&](const Cut& a, const Cut& b) { return shape[a.axis] > shape[b.axis]; });
  return cuts;
}

bool is_followed_on_the_chip(const ChipGraph& edit, std::int32_t tensor) {
  const std::vector<std::int32_t>& readers = edit.consumers(tensor);
  return std::any_of(readers.begin(), readers.end(), [&](std::int32_t op) { return edit.fits(op); });
}

std::vector<ir::Operator> pieces(ChipGraph& edit, std::int32_t index, const Cut& cut, std::int32_t count) {
  const ir::Operator op = edit.op(index);
  const std::int32_t x = op.inputs[0], y = op.outputs[0], size = edit.shape(x)[cut.axis];
  const std::int32_t rows = (size + count - 1) / count;
  OpList list(edit, edit.tensor(y).name);
  std::vector<std::int32_t> parts;
  for (std::int32_t begin = 0; begin < size; begin += rows) {
    const std::int32_t taken = std::min(rows, size - begin);
    std::vector<std::int32_t> inputs = op.inputs;
    inputs[0] = list.slice(x, cut.axis, begin, taken);
    ir::Shape shape = edit.shape(y);
    shape[cut.result_axis] = taken;
    parts.push_back(list.tensor_like(y, shape));
    list.add(op.type, op.options_type, op.attributes, std::move(inputs), {parts.back()}, edit.tensor(y).type);
    list.last().version = op.version;
  }
  list.concatenation(parts, cut.result_axis, y);
  return list.take();
}

bool split_rows_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const bool is_transpose = op.type == Op::TRANSPOSE;
  if ((!is_transpose && op.type != Op::SOFTMAX) || !edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  if (!edit.affine(x) || !edit.affine(y) || (is_transpose && !is_view_op(edit, index))) return false;
  if (!is_transpose && edit.shape(x) != edit.shape(y)) return false;
  if (edit.fits(index) || (is_transpose && !is_followed_on_the_chip(edit, y))) return false;
  const std::int64_t elements = edit.shape(x).elements();
  if (!edit.options().fits && (!is_transpose || elements <= kTransposedElements)) return false;
  for (const Cut& cut : cuts_of(edit, index)) {
    const std::int32_t size = edit.shape(x)[cut.axis];
    for (std::int32_t count = 2; count <= std::min(kMostRowPieces, size); ++count) {
      const std::int64_t rows = (size + count - 1) / count;
      if (is_transpose && rows * (elements / size) > kTransposedElements) continue;
      if (edit.commit(index, pieces(edit, index, cut, count), fmt::format("{} of pieces", op.type))) return true;
    }
  }
  return false;
}

}  // namespace

constinit const Pass split_rows_chip_pass = {
    .name = "split-rows",
    .summary = "SOFTMAX and TRANSPOSE of more elements than map are cut into pieces that do, and joined.",
    .at_on_chip = split_rows_at};

}  // namespace reef::passes

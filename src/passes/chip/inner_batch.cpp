// SPDX-License-Identifier: Apache-2.0
// Layers on a batch that the network made itself: windows of attention or heads as images, [windows, 7, 7, channels].
//
// The chip takes one image at a time. Where a layer looks at single pixels or along rows, the images are one image, one
// below the other. Where it looks at neighbours above and below, it is written out for each image, with the same
// weights. Between such layers there are RESHAPEs that move nothing. A batch that comes with the model's inputs is left
// to `unroll-batch`.
#include <algorithm>

#include "passes/chip/batch_rules.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostImages = 16;

bool is_layer(OpName type) {
  return type == Op::CONV_2D || type == Op::DEPTHWISE_CONV_2D || type == Op::AVERAGE_POOL_2D ||
         type == Op::MAX_POOL_2D || type == Op::PAD || type == Op::RESIZE_NEAREST_NEIGHBOR ||
         type == Op::RESIZE_BILINEAR;
}

// Whether each row of the result is computed from the row at the same place: single pixels, and layers along rows
// alone, such as 1-D convolutions of sequences.
bool keeps_rows_apart(const ChipGraph& edit, const ir::Operator& op) {
  const ir::Shape &x = edit.shape(op.inputs[0]), &y = edit.shape(op.outputs[0]);
  if (x[1] != y[1]) return false;
  if (op.type == Op::PAD) {
    const auto amounts = edit.ints(op.inputs[1]);  // before and behind, of each dimension
    return amounts && amounts->size() == 8 && (*amounts)[2] == 0 && (*amounts)[3] == 0;
  }
  if (op.attributes.get_int("stride_h", 1) != 1) return false;
  if (op.type == Op::AVERAGE_POOL_2D || op.type == Op::MAX_POOL_2D)
    return op.attributes.get_int("filter_height", 1) == 1;
  if (op.type != Op::CONV_2D && op.type != Op::DEPTHWISE_CONV_2D) return false;
  const ir::Shape& filter = edit.shape(op.inputs[1]);
  return filter.rank() == 4 && filter[1] == 1;
}

// Images one below the other.
ir::Shape stacked(const ir::Shape& shape) { return {1, shape[0] * shape[1], shape[2], shape[3]}; }

bool comes_with_inputs(const ChipGraph& edit, std::int32_t batch) {
  return std::any_of(edit.graph().inputs.begin(), edit.graph().inputs.end(),
                     [&](std::int32_t input) { return edit.shape(input).rank() > 1 && edit.shape(input)[0] == batch; });
}

bool as_one_image(ChipGraph& edit, std::int32_t index) {
  ir::Operator op = edit.op(index);
  const std::int32_t y = op.outputs[0];
  const ir::Shape shape = edit.shape(y);
  OpList list(edit, edit.tensor(y).name);
  op.inputs[0] = list.reshape(op.inputs[0], stacked(edit.shape(op.inputs[0])));
  op.outputs[0] = list.tensor_like(y, stacked(shape));
  std::vector<ir::Operator> ops = list.take();
  ops.push_back(op);
  OpList behind(edit, edit.tensor(y).name);
  behind.reshape(op.outputs[0], shape, y);
  for (ir::Operator& each : behind.take()) ops.push_back(std::move(each));
  return edit.commit(index, std::move(ops), "the same with the images of its batch as one", 0, Op::RESHAPE);
}

bool for_each_image(ChipGraph& edit, std::int32_t index, std::int32_t batch) {
  const ir::Operator op = edit.op(index);
  const std::int32_t y = op.outputs[0];
  ir::Shape one = edit.shape(y);
  const ir::Shape whole = one;
  one[0] = 1;
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t x = list.reshape(op.inputs[0], stacked(edit.shape(op.inputs[0])));
  std::vector<std::int32_t> results;
  for (const std::int32_t image : list.split(x, 1, batch)) {
    results.push_back(list.tensor_like(y, one));
    std::vector<std::int32_t> inputs(op.inputs.size(), -1);  // constants
    inputs[0] = image;
    add_for_one_image(edit, list, op, std::move(inputs), {results.back()});
  }
  list.reshape(list.concatenation(results, 1), whole, y);
  return edit.commit(index, list.take(), fmt::format("one for each of {} images", batch), 0, Op::RESHAPE);
}

bool inner_batch_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator& op = edit.op(index);
  if (op.is_custom() || !is_layer(op.type) || !edit.is_sound(index) || op.outputs.size() != 1) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  if (edit.shape(x).rank() != 4 || edit.shape(y).rank() != 4 || !edit.affine(x) || !edit.affine(y)) return false;
  const std::int32_t batch = edit.shape(x)[0];
  if (batch < 2 || comes_with_inputs(edit, batch) || edit.fits(index)) return false;
  if (!is_batch_parallel(edit, index, batch)) return false;
  if (keeps_rows_apart(edit, op)) return as_one_image(edit, index);
  return batch <= kMostImages && for_each_image(edit, index, batch);
}

}  // namespace

constinit const Pass inner_batch_chip_pass = {
    .name = "inner-batch",
    .summary =
        "Layers on a batch that the network made itself (windows, heads, rows) work on one tall image, or are "
        "written out for each of up to 16 images.",
    .at_on_chip = inner_batch_at};

}  // namespace reef::passes

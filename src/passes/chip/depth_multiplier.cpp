// SPDX-License-Identifier: Apache-2.0
// DEPTHWISE_CONV_2D that makes several channels of each (a depth multiplier): every channel is repeated first, by a 1x1
// CONV_2D with weights 0 and 1, and then convolved by itself. The same bytes. How the chip would lay out the weights of
// the original is not known; of these it is.
#include "passes/pass.h"

namespace reef::passes {
namespace {

bool depth_multiplier_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::DEPTHWISE_CONV_2D || !edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], weights = op.inputs[1], y = op.outputs[0];
  const ir::Shape &shape = edit.shape(x), &filter = edit.shape(weights);
  if (!edit.affine(x) || !edit.affine(y) || shape.rank() != 4 || filter.rank() != 4) return false;
  const std::int32_t channels = shape[3], results = filter[3];
  // One channel is a plain convolution to the chip.
  if (channels <= 1 || results == channels || results % channels != 0) return false;
  const std::int32_t multiplier = results / channels;
  std::vector<std::int32_t> sources;
  for (std::int32_t i = 0; i < results; ++i) sources.push_back(i / multiplier);
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t repeated = list.channels_picked(x, sources);
  if (repeated < 0) return false;
  ir::Attributes attributes = op.attributes;
  attributes.set("depth_multiplier", std::int64_t{1});
  std::vector<std::int32_t> inputs = op.inputs;
  inputs[0] = repeated;
  list.add(op.type, op.options_type, std::move(attributes), std::move(inputs), {y}, edit.tensor(x).type);
  list.last().version = op.version;
  return edit.commit(index, list.take(), "repeated channels and DEPTHWISE_CONV_2D");
}

}  // namespace

constinit const Pass depth_multiplier_chip_pass = {
    .name = "depth-multiplier",
    .summary =
        "DEPTHWISE_CONV_2D with several results for each channel becomes a CONV_2D that repeats channels "
        "and a DEPTHWISE_CONV_2D with one result for each.",
    .at_on_chip = depth_multiplier_at};

}  // namespace reef::passes

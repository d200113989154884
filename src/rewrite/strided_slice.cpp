// SPDX-License-Identifier: Apache-2.0
// STRIDED_SLICE that leaves out rows or columns (the first layer of YOLOv5, "Focus"): a slice without gaps and then
// MAX_POOL_2D of single pixels, whose stride may be any. The largest of one number is that number. One that leaves out
// channels (rotary positions take every second) is a 1x1 CONV_2D that picks those that are left.
#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

struct Range {
  std::int64_t begin = 0, size = 0, stride = 1;  // size: of the piece without gaps
};

// What the operator takes along a dimension; nothing if it goes backwards or drops the dimension.
std::optional<Range> range_along(const ir::Operator& op, int d, std::int32_t extent, std::int64_t begin,
                                 std::int64_t end, std::int64_t stride) {
  const auto masked = [&](std::string_view mask) { return (op.attributes.get_int(mask) >> d & 1) != 0; };
  if (stride < 1 || stride > extent || masked("shrink_axis_mask")) return {};
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
  const std::int64_t from = masked("begin_mask") ? 0 : clamp(begin), to = masked("end_mask") ? extent : clamp(end);
  if (from >= to) return {};
  return Range{from, to - from, stride};
}

// All of x but for every so-many-th channel.
bool pick_channels(GraphEdit& edit, std::int32_t index, const Range& channels) {
  const ir::Operator op = edit.op(index);
  std::vector<std::int32_t> picked;
  for (std::int64_t c = channels.begin; c < channels.begin + channels.size; c += channels.stride) {
    picked.push_back(static_cast<std::int32_t>(c));
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t y = list.channels_picked(op.inputs[0], picked);
  if (y < 0) return false;
  list.reshape(y, edit.shape(op.outputs[0]), op.outputs[0]);
  return edit.commit(index, list.take(), "a 1x1 CONV_2D that picks channels");
}

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != "STRIDED_SLICE" || !edit.is_sound(index) || op.attributes.get_bool("offset")) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x), result = edit.shape(y);
  const auto begins = edit.ints(op.inputs[1]), ends = edit.ints(op.inputs[2]), strides = edit.ints(op.inputs[3]);
  if (shape.rank() != 4 || result.rank() != 4 || !edit.affine(x) || !edit.same_quantization(x, y)) return false;
  if (!begins || !ends || !strides || begins->size() != 4 || ends->size() != 4 || strides->size() != 4) return false;
  if (op.attributes.get_int("ellipsis_mask") != 0 || op.attributes.get_int("new_axis_mask") != 0) return false;
  std::vector<std::int64_t> from;
  ir::Shape sizes = shape;
  for (int d = 0; d < 4; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const auto range = range_along(op, d, shape[d], (*begins)[i], (*ends)[i], (*strides)[i]);
    if (!range || (range->stride != 1 && d == 0)) return false;
    if (result[d] != (range->size + range->stride - 1) / range->stride) return false;
    from.push_back(range->begin);
    sizes[d] = static_cast<std::int32_t>(range->size);
    if (d < 3 || range->stride == 1) continue;
    const bool is_whole = sizes[0] == shape[0] && sizes[1] == shape[1] && sizes[2] == shape[2];
    const bool has_gaps = (*strides)[1] != 1 || (*strides)[2] != 1;
    return is_whole && !has_gaps && shape[0] == 1 && !edit.fits(index) && pick_channels(edit, index, *range);
  }
  if (((*strides)[1] == 1 && (*strides)[2] == 1) || edit.fits(index)) return false;
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t piece = sizes == shape ? x : list.slice_box(x, from, sizes);
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_h", (*strides)[1]);
  attributes.set("stride_w", (*strides)[2]);
  attributes.set("filter_height", std::int64_t{1});
  attributes.set("filter_width", std::int64_t{1});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  list.add("MAX_POOL_2D", "Pool2DOptions", std::move(attributes), {piece}, {y}, edit.tensor(y).type);
  return edit.commit(index, list.take(), "STRIDED_SLICE without gaps and MAX_POOL_2D of single pixels");
}

}  // namespace

extern const Rewrite strided_slice_rewrite;
constinit const Rewrite strided_slice_rewrite = {
    .info = {.name = "strided-slice",
             .summary =
                 "STRIDED_SLICE that leaves out rows or columns becomes one that does not, and MAX_POOL_2D of single "
                 "pixels; one that leaves out channels, a 1x1 CONV_2D that picks the others.",
             .safety = Safety::kExact,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

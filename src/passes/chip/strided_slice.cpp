// SPDX-License-Identifier: Apache-2.0
// STRIDED_SLICE that leaves out rows or columns (the first layer of YOLOv5, "Focus"): a slice without gaps and then
// MAX_POOL_2D of single pixels, whose stride may be any. The largest of one number is that number. One that leaves out
// channels (rotary positions take every second) or takes them backwards (blue, green, red for red, green, blue) is a
// 1x1 CONV_2D that picks those that are wanted.
#include <array>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace reef::passes {
namespace {

struct Range {
  std::int64_t begin = 0, size = 0, stride = 1;  // size: of the piece without gaps
};

// The range that the operator takes along a dimension; none if it goes backwards or drops the dimension.
std::optional<Range> range_along(const ir::Operator& op, int d, std::int32_t extent, std::int64_t begin,
                                 std::int64_t end, std::int64_t stride) {
  const auto masked = [&](std::string_view mask) { return (op.attributes.get_int(mask) >> d & 1) != 0; };
  if (stride < 1 || stride > extent || masked("shrink_axis_mask")) return {};
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
  const std::int64_t from = masked("begin_mask") ? 0 : clamp(begin), to = masked("end_mask") ? extent : clamp(end);
  if (from >= to) return {};
  return Range{from, to - from, stride};
}

// The numbers of channels that are taken, in order; none: the operator drops the dimension, or nothing is taken.
std::vector<std::int32_t> channels_of(const ir::Operator& op, std::int32_t extent, std::int64_t begin, std::int64_t end,
                                      std::int64_t stride) {
  std::vector<std::int32_t> taken;
  const auto masked = [&](std::string_view mask) { return (op.attributes.get_int(mask) >> 3 & 1) != 0; };
  if (stride == 0 || masked("shrink_axis_mask")) return taken;
  const std::int64_t least = stride > 0 ? 0 : -1, most = stride > 0 ? extent : extent - 1;
  const auto clamp = [&](std::int64_t at) { return std::clamp(at < 0 ? at + extent : at, least, most); };
  const std::int64_t first = masked("begin_mask") ? (stride > 0 ? least : most) : clamp(begin);
  const std::int64_t last = masked("end_mask") ? (stride > 0 ? most : least) : clamp(end);
  for (std::int64_t c = first; stride > 0 ? c < last : c > last; c += stride) {
    taken.push_back(static_cast<std::int32_t>(c));
  }
  return taken;
}

// Some channels of some rows and columns, all of which are taken.
bool pick_channels(ChipGraph& edit, std::int32_t index, const std::vector<std::int64_t>& from, ir::Shape sizes,
                   const std::vector<std::int32_t>& channels) {
  const ir::Operator op = edit.op(index);
  const ir::Shape result = edit.shape(op.outputs[0]);
  sizes[3] = edit.shape(op.inputs[0])[3];
  if (result.last() != static_cast<std::int32_t>(channels.size()) || sizes[0] != 1) return false;
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const bool is_whole = sizes == edit.shape(op.inputs[0]);
  const std::int32_t piece = is_whole ? op.inputs[0] : list.slice_box(op.inputs[0], from, sizes);
  const std::int32_t y = list.channels_picked(piece, channels);
  if (y < 0 || edit.shape(y) != result) return false;
  list.last().outputs[0] = op.outputs[0];
  return edit.commit(index, list.take(), "a 1x1 CONV_2D that picks channels");
}

// Tokens with channels, or a vector: the same of an image that is one row high. It is looked at again then.
bool see_as_image(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const TensorId x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x), result = edit.shape(y);
  const int rank = shape.rank();
  if (rank < 2 || rank > 3 || result.rank() != rank || edit.fits(index)) return false;
  if (rank == 3 && shape[0] != 1) return false;
  const int added = 4 - rank;  // axes of size 1 in front of the last two
  std::array<std::vector<std::int64_t>, 3> lists;
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const auto values = edit.ints(op.inputs[i + 1]);
    if (!values || static_cast<int>(values->size()) != rank) return false;
    if (i == 2 && rank == 3 && values->front() != 1) return false;
    lists[i] = *values;
    lists[i].insert(lists[i].end() - 2, static_cast<std::size_t>(added), i == 0 ? 0 : 1);
  }
  ir::Attributes attributes = op.attributes;
  for (const std::string_view mask : {"begin_mask", "end_mask"}) {
    const std::int64_t given = op.attributes.get_int(mask), leading = given & ((1 << (rank - 2)) - 1);
    attributes.set(mask, leading | given >> (rank - 2) << 2 | (added == 2 ? 3 : 2));
  }
  const auto as_image = [&](const ir::Shape& of) { return ir::Shape({1, 1, of.last(1), of.last()}); };
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t image = list.reshape(x, as_image(shape)), part = list.tensor_like(y, as_image(result));
  list.add("STRIDED_SLICE", op.options_type, std::move(attributes),
           {image, list.int_vector(lists[0]), list.int_vector(lists[1]), list.int_vector(lists[2])}, {part},
           edit.tensor(y).type);
  list.reshape(part, result, y);
  return edit.commit(index, list.take(), "a STRIDED_SLICE of an image one row high");
}

bool at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != "STRIDED_SLICE" || !edit.is_sound(index) || op.attributes.get_bool("offset")) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x), result = edit.shape(y);
  const auto begins = edit.ints(op.inputs[1]), ends = edit.ints(op.inputs[2]), strides = edit.ints(op.inputs[3]);
  const bool has_masks = op.attributes.get_int("ellipsis_mask") != 0 || op.attributes.get_int("new_axis_mask") != 0 ||
                         op.attributes.get_int("shrink_axis_mask") != 0;
  if (shape.rank() < 4 && !has_masks && strides && edit.affine(x) && edit.same_quantization(x, y) &&
      std::any_of(strides->begin(), strides->end(), [](std::int64_t stride) { return stride > 1; })) {
    return see_as_image(edit, index);
  }
  if (shape.rank() != 4 || result.rank() != 4 || !edit.affine(x) || !edit.same_quantization(x, y)) return false;
  if (!begins || !ends || !strides || begins->size() != 4 || ends->size() != 4 || strides->size() != 4) return false;
  if (op.attributes.get_int("ellipsis_mask") != 0 || op.attributes.get_int("new_axis_mask") != 0) return false;
  std::vector<std::int64_t> from;
  ir::Shape sizes = shape;
  for (int d = 0; d < 4; ++d) {
    const auto i = static_cast<std::size_t>(d);
    if (d == 3 && (*strides)[3] != 1) {
      const bool has_gaps = (*strides)[1] != 1 || (*strides)[2] != 1;
      from.push_back(0);
      return !has_gaps && !edit.fits(index) &&
             pick_channels(edit, index, from, sizes,
                           channels_of(op, shape[3], (*begins)[3], (*ends)[3], (*strides)[3]));
    }
    const auto range = range_along(op, d, shape[d], (*begins)[i], (*ends)[i], (*strides)[i]);
    if (!range || (range->stride != 1 && d == 0)) return false;
    if (result[d] != (range->size + range->stride - 1) / range->stride) return false;
    from.push_back(range->begin);
    sizes[d] = static_cast<std::int32_t>(range->size);
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

extern const Pass strided_slice_chip_pass;
constinit const Pass strided_slice_chip_pass = {
    .name = "strided-slice",
    .summary =
        "STRIDED_SLICE that leaves out rows or columns becomes one that does not, and MAX_POOL_2D of single "
        "pixels; one that leaves out channels or takes them backwards, a 1x1 CONV_2D that picks those that "
        "are wanted.",
    .safety = Safety::kExact,
    .on_by_default = true,
    .at_on_chip = at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// STRIDED_SLICE that leaves out rows or columns (the first layer of YOLOv5, "Focus"): a slice without gaps and then
// MAX_POOL_2D of single pixels, whose stride may be any. The largest of one number is that number. One that leaves out
// channels (rotary positions take every second) or takes them backwards (blue, green, red for red, green, blue) is a
// 1x1 CONV_2D that picks those that are wanted. Tokens with channels are an image one row high.
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "passes/pass.h"

namespace reef::passes {
namespace {

// The operator on an image. Tokens with channels, or a vector, are an image one row high.
struct Step {
  ir::Shape shape, result;
  std::array<std::int64_t, 4> begin{}, end{}, stride{};
  std::int64_t begin_mask = 0, end_mask = 0;

  bool begins_anywhere(int d) const { return (begin_mask >> d & 1) != 0; }
  bool ends_anywhere(int d) const { return (end_mask >> d & 1) != 0; }
};

std::optional<Step> step_of(const ChipGraph& edit, const ir::Operator& op) {
  const ir::Shape shape = edit.shape(op.inputs[0]), result = edit.shape(op.outputs[0]);
  const int rank = shape.rank(), added = 4 - rank;
  if (rank < 2 || rank > 4 || result.rank() != rank || (rank == 3 && shape[0] != 1)) return {};
  for (const std::string_view mask : {"ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    if (op.attributes.get_int(mask) != 0) return {};
  }
  Step step;
  const int first = rank - 2;  // axes before the last two; those that are added follow them
  const auto place = [&](int axis) { return static_cast<std::size_t>(axis < first ? axis : axis + added); };
  step.end.fill(1);
  step.stride.fill(1);
  std::array<std::int32_t, 4> from = {1, 1, 1, 1}, to = from;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto values = edit.ints(op.inputs[i + 1]);
    if (!values || static_cast<int>(values->size()) != rank) return {};
    auto& list = i == 0 ? step.begin : i == 1 ? step.end : step.stride;
    for (int axis = 0; axis < rank; ++axis) list[place(axis)] = (*values)[at(axis)];
  }
  for (int axis = 0; axis < rank; ++axis) {
    from[place(axis)] = shape[axis];
    to[place(axis)] = result[axis];
    const auto moved = [&](std::string_view mask) { return (op.attributes.get_int(mask) >> axis & 1) << place(axis); };
    step.begin_mask |= moved("begin_mask");
    step.end_mask |= moved("end_mask");
  }
  step.shape = {from[0], from[1], from[2], from[3]};
  step.result = {to[0], to[1], to[2], to[3]};
  return step;
}

struct Range {
  std::int64_t begin = 0, size = 0, stride = 1;  // size: of the piece without gaps
};

// The range that is taken along a dimension; none if it goes backwards.
std::optional<Range> range_along(const Step& step, int d) {
  const auto i = static_cast<std::size_t>(d);
  const std::int64_t extent = step.shape[d], stride = step.stride[i];
  if (stride < 1 || stride > extent) return {};
  const auto clamp = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + extent : at, 0, extent); };
  const std::int64_t from = step.begins_anywhere(d) ? 0 : clamp(step.begin[i]),
                     to = step.ends_anywhere(d) ? extent : clamp(step.end[i]);
  if (from >= to) return {};
  return Range{from, to - from, stride};
}

// The numbers of channels that are taken, in order; none: nothing is taken.
std::vector<std::int32_t> channels_of(const Step& step) {
  std::vector<std::int32_t> taken;
  const std::int64_t extent = step.shape[3], stride = step.stride[3];
  if (stride == 0) return taken;
  const std::int64_t least = stride > 0 ? 0 : -1, most = stride > 0 ? extent : extent - 1;
  const auto clamp = [&](std::int64_t at) { return std::clamp(at < 0 ? at + extent : at, least, most); };
  const std::int64_t first = step.begins_anywhere(3) ? (stride > 0 ? least : most) : clamp(step.begin[3]);
  const std::int64_t last = step.ends_anywhere(3) ? (stride > 0 ? most : least) : clamp(step.end[3]);
  for (std::int64_t c = first; stride > 0 ? c < last : c > last; c += stride) {
    taken.push_back(static_cast<std::int32_t>(c));
  }
  return taken;
}

// Single pixels with a stride.
std::int32_t pooled(OpList& list, ChipGraph& edit, std::int32_t x, const Step& step, std::int32_t like) {
  ir::Attributes attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  attributes.set("stride_h", step.stride[1]);
  attributes.set("stride_w", step.stride[2]);
  attributes.set("filter_height", std::int64_t{1});
  attributes.set("filter_width", std::int64_t{1});
  attributes.set("fused_activation_function", ir::EnumName{"NONE"});
  const std::int32_t y = list.tensor_like(like, step.result);
  list.add(Op::MAX_POOL_2D, "Pool2DOptions", std::move(attributes), {x}, {y}, edit.tensor(like).type);
  return y;
}

// `image` in steps. -1: not in these ways. The result's tensor is new, and like `like`.
std::int32_t in_steps(OpList& list, ChipGraph& edit, const Step& step, std::int32_t image, std::int32_t like) {
  std::vector<std::int64_t> from;
  ir::Shape sizes = step.shape;
  const bool has_gaps = step.stride[1] != 1 || step.stride[2] != 1, picks = step.stride[3] != 1;
  for (int d = 0; d < 4; ++d) {
    if (d == 3 && picks) {
      from.push_back(0);
      continue;
    }
    const auto range = range_along(step, d);
    if (!range || (range->stride != 1 && d == 0)) return -1;
    if (step.result[d] != (range->size + range->stride - 1) / range->stride) return -1;
    from.push_back(range->begin);
    sizes[d] = static_cast<std::int32_t>(range->size);
  }
  if (has_gaps == picks) return -1;
  const std::vector<std::int32_t> channels = picks ? channels_of(step) : std::vector<std::int32_t>();
  if (picks && (step.result[3] != static_cast<std::int32_t>(channels.size()) || sizes[0] != 1)) return -1;
  const std::int32_t piece = sizes == step.shape ? image : list.slice_box(image, from, sizes);
  return picks ? list.channels_picked(piece, channels) : pooled(list, edit, piece, step, like);
}

bool strided_slice_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::STRIDED_SLICE || !edit.is_sound(index) || op.attributes.get_bool("offset")) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  if (!edit.affine(x) || !edit.same_quantization(x, y)) return false;
  const auto step = step_of(edit, op);
  if (!step || std::count(step->stride.begin(), step->stride.end(), 1) == 4 || edit.fits(index)) return false;
  OpList list(edit, edit.tensor(y).name);
  const bool is_image = edit.shape(x).rank() == 4;
  const std::int32_t made = in_steps(list, edit, *step, is_image ? x : list.reshape(x, step->shape), y);
  if (made < 0 || edit.shape(made) != step->result) return false;
  if (is_image) {
    list.last().outputs[0] = y;
  } else {
    list.reshape(made, edit.shape(y), y);
  }
  return edit.commit(index, list.take(),
                     step->stride[3] != 1 ? "a 1x1 CONV_2D that picks channels"
                                          : "STRIDED_SLICE without gaps and MAX_POOL_2D of single pixels");
}

}  // namespace

constinit const Pass strided_slice_chip_pass = {
    .name = "strided-slice",
    .summary =
        "STRIDED_SLICE that leaves out rows or columns becomes one that does not, and MAX_POOL_2D of single "
        "pixels; one that leaves out channels or takes them backwards, a 1x1 CONV_2D that picks those that "
        "are wanted. Tokens are pixels of one row.",
    .at_on_chip = strided_slice_at};

}  // namespace reef::passes

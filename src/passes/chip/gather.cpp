// SPDX-License-Identifier: Apache-2.0
// GATHER with constant indices, REVERSE_V2 and STRIDED_SLICE that goes backwards (BGR to RGB, for one). Channels of a
// picture are put in order by a 1x1 CONV_2D with weights 0 and 1; along other dimensions slices are joined, neighbours
// as one, or, where that takes too many, the dimension becomes that of channels for a moment.
#include <algorithm>
#include <numeric>

#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::size_t kMostGathered = 32;

struct Selection {
  int axis = 0;
  std::vector<std::int32_t> sources;  // along the axis of input 0, for each place of the output
};

std::optional<int> axis_from(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return {};
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// The shape of the result, with the indices as one list where a GATHER has a table of them.
ir::Shape flat_result(const ChipGraph& edit, std::int32_t x, const Selection& selection) {
  ir::Shape shape = edit.shape(x);
  shape[selection.axis] = static_cast<std::int32_t>(selection.sources.size());
  return shape;
}

// All of the tensor, but for one axis that is taken backwards.
std::optional<Selection> backwards(const ChipGraph& edit, const ir::Operator& op) {
  const ir::Shape &shape = edit.shape(op.inputs[0]), &result = edit.shape(op.outputs[0]);
  const auto begins = edit.ints(op.inputs[1]), strides = edit.ints(op.inputs[3]);
  const auto mask = [&](std::string_view name) { return op.attributes.get_int(name); };
  if (!begins || !strides || strides->size() != begins->size() || op.attributes.get_bool("offset")) return {};
  if (static_cast<int>(begins->size()) != shape.rank() || result.rank() != shape.rank()) return {};
  if (mask("ellipsis_mask") != 0 || mask("new_axis_mask") != 0 || mask("shrink_axis_mask") != 0) return {};
  Selection selection{-1, {}};
  for (int d = 0; d < shape.rank(); ++d) {
    const auto i = static_cast<std::size_t>(d);
    if ((*strides)[i] == 1 && result[d] == shape[d]) continue;
    if ((*strides)[i] >= 0 || selection.axis >= 0) return {};
    selection.axis = d;
    const std::int64_t given = (*begins)[i] < 0 ? (*begins)[i] + shape[d] : (*begins)[i];
    const bool is_open = (mask("begin_mask") >> d & 1) != 0;
    std::int64_t at = is_open ? shape[d] - 1 : std::min<std::int64_t>(given, shape[d] - 1);
    for (std::int32_t taken = 0; taken < result[d]; ++taken, at += (*strides)[i]) {
      if (at < 0) return {};
      selection.sources.push_back(static_cast<std::int32_t>(at));
    }
  }
  if (selection.axis < 0 || selection.sources.empty()) return {};
  return selection;
}

std::optional<Selection> selection_of(const ChipGraph& edit, const ir::Operator& op) {
  const ir::Shape& shape = edit.shape(op.inputs[0]);
  if (op.type == Op::STRIDED_SLICE) return backwards(edit, op);
  Selection selection;
  if (op.type == Op::GATHER) {
    const auto axis = axis_from(op.attributes.get_int("axis"), shape.rank());
    const auto indices = edit.ints(op.inputs[1]);
    if (!axis || !indices || indices->empty() || op.attributes.get_int("batch_dims") != 0) return {};
    for (const std::int64_t each : *indices) {
      if (each < 0 || each >= shape[*axis]) return {};
      selection.sources.push_back(static_cast<std::int32_t>(each));
    }
    selection.axis = *axis;
    return selection;
  }
  const auto axes = edit.ints(op.inputs[1]);
  if (op.type != Op::REVERSE_V2 || !axes || axes->size() != 1) return {};
  const auto axis = axis_from((*axes)[0], shape.rank());
  if (!axis) return {};
  selection.axis = *axis;
  selection.sources.resize(static_cast<std::size_t>(shape[*axis]));
  std::iota(selection.sources.rbegin(), selection.sources.rend(), 0);
  return selection;
}

bool join_slices(ChipGraph& edit, std::int32_t index, std::int32_t x, std::int32_t y, const Selection& selection) {
  OpList list(edit, edit.tensor(y).name);
  std::vector<std::pair<std::int32_t, std::int32_t>> runs;  // begin and size
  for (const std::int32_t source : selection.sources) {
    if (!runs.empty() && runs.back().first + runs.back().second == source) {
      ++runs.back().second;
    } else {
      runs.emplace_back(source, 1);
    }
  }
  if (runs.size() > kMostGathered) return false;
  if (runs.size() == 1) {
    list.slice(x, selection.axis, runs[0].first, runs[0].second, y);
    return edit.commit(index, list.take(), "STRIDED_SLICE");
  }
  std::vector<std::int32_t> parts;
  for (const auto& [begin, size] : runs) parts.push_back(list.slice(x, selection.axis, begin, size));
  list.concatenation(parts, selection.axis, y);
  return edit.commit(index, list.take(), fmt::format("{} STRIDED_SLICE and CONCATENATION", runs.size()));
}

// [outer, n, inner] -> [1, outer, inner, n], whose channels are picked, and back.
bool pick_as_channels(ChipGraph& edit, std::int32_t index, std::int32_t x, std::int32_t y, const Selection& selection) {
  const ir::Shape shape = edit.shape(x);
  const auto size = [&](int begin, int end) { return static_cast<std::int32_t>(shape.product(begin, end)); };
  const std::int32_t outer = size(0, selection.axis), inner = size(selection.axis + 1, shape.rank());
  if (shape.elements() == 0) return false;
  constexpr int kSwap[] = {0, 1, 3, 2};
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t count = shape[selection.axis];
  const std::int32_t pixels = inner == 1 ? list.reshape(x, {1, 1, outer, count})
                                         : list.transpose(list.reshape(x, {1, outer, count, inner}), kSwap);
  std::int32_t picked = list.channels_picked(pixels, selection.sources);
  if (picked < 0) return false;
  if (inner > 1) picked = list.transpose(picked, kSwap);
  list.reshape(picked, edit.shape(y), y);
  return edit.commit(index, list.take(), "a 1x1 CONV_2D that picks, with the dimension as channels", 0, Op::RESHAPE);
}

bool gather_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::GATHER && op.type != Op::REVERSE_V2 && op.type != Op::STRIDED_SLICE) return false;
  if (!edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  if (!edit.affine(x) || !edit.same_quantization(x, y) || edit.shape(x).rank() == 0) return false;
  const auto selection = selection_of(edit, op);
  if (!selection || edit.fits(index)) return false;
  const ir::Shape expected = flat_result(edit, x, *selection);
  if (edit.shape(y).elements() != expected.elements()) return false;
  if (edit.shape(y) != expected) return pick_as_channels(edit, index, x, y, *selection);
  if (selection->axis == 3 && expected.rank() == 4) {
    OpList list(edit, edit.tensor(y).name);
    const std::int32_t ordered = list.channels_picked(x, selection->sources);
    if (ordered >= 0) {
      list.last().outputs[0] = y;
      if (edit.commit(index, list.take(), "a 1x1 CONV_2D that picks channels")) return true;
    }
  }
  return join_slices(edit, index, x, y, *selection) || pick_as_channels(edit, index, x, y, *selection);
}

}  // namespace

constinit const Pass gather_chip_pass = {
    .name = "gather",
    .summary =
        "GATHER with constant indices, REVERSE_V2 and STRIDED_SLICE that goes backwards become a 1x1 CONV_2D that "
        "picks channels, or slices and CONCATENATION; where these are too many, the dimension becomes channels.",
    .at_on_chip = gather_at};

}  // namespace reef::passes

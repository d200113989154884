// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>

#include "ir/op.h"
#include "passes/chip/leading_axes.h"

namespace reef::passes {
namespace {

// Where a SLICE begins, or a STRIDED_SLICE that leaves nothing out and drops no dimension.
std::optional<std::vector<std::int64_t>> begins_of(const ChipGraph& edit, const ir::Operator& op) {
  auto begins = edit.ints(op.inputs[1]);
  if (op.type == Op::SLICE || !begins) return begins;
  const auto strides = edit.ints(op.inputs[3]);
  const bool is_plain = op.attributes.get_int("ellipsis_mask", 0) == 0 &&
                        op.attributes.get_int("new_axis_mask", 0) == 0 &&
                        op.attributes.get_int("shrink_axis_mask", 0) == 0 && !op.attributes.get_bool("offset");
  if (!is_plain || !strides || std::any_of(strides->begin(), strides->end(), [](auto s) { return s != 1; })) return {};
  const ir::Shape& shape = edit.shape(op.inputs[0]);
  for (std::size_t d = 0; d < begins->size() && static_cast<int>(d) < shape.rank(); ++d) {
    std::int64_t& begin = (*begins)[d];
    const std::int64_t size = shape[static_cast<int>(d)];
    if (((op.attributes.get_int("begin_mask", 0) >> d) & 1) != 0) begin = 0;
    begin = std::clamp<std::int64_t>(begin < 0 ? begin + size : begin, 0, size);
  }
  return begins;
}

}  // namespace

bool replace_on_fewer(ChipGraph& edit, std::int32_t index, OpList& list, ir::Operator op,
                      const std::vector<ir::Shape>& results) {
  const std::vector<std::int32_t> wanted = op.outputs;
  std::vector<ir::Operator> ops = list.take();
  OpList behind(edit, edit.tensor(wanted[0]).name);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (results[i] == edit.shape(wanted[i])) continue;
    op.outputs[i] = behind.tensor_like(wanted[i], results[i]);
    behind.reshape(op.outputs[i], edit.shape(wanted[i]), wanted[i]);
  }
  ops.push_back(std::move(op));
  for (ir::Operator& last : behind.take()) ops.push_back(std::move(last));
  return edit.commit(index, std::move(ops), "the same on fewer dimensions", 0, Op::RESHAPE);
}

// Runs of dimensions that are not repeated, and those that are.
bool tile_on_fewer(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const ir::Shape shape = edit.shape(op.inputs[0]);
  const ir::Shape result = edit.shape(op.outputs[0]);
  if (result.rank() != shape.rank()) return false;
  ir::Shape flat;
  std::vector<std::int64_t> times;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] < 1 || result[d] % shape[d] != 0) return false;
    const std::int64_t count = result[d] / shape[d];
    if (shape[d] == 1 && count == 1) continue;
    if (count == 1 && !times.empty() && times.back() == 1) {
      flat[flat.rank() - 1] *= shape[d];
    } else {
      flat.push_back(shape[d]);
      times.push_back(count);
    }
  }
  if (flat.rank() > kMostGroups) return false;
  ir::Shape from, to;
  std::vector<std::int64_t> all;
  for (int d = flat.rank(); d < 4; ++d) {
    from.push_back(1);
    to.push_back(1);
    all.push_back(1);
  }
  for (int d = 0; d < flat.rank(); ++d) {
    from.push_back(flat[d]);
    to.push_back(static_cast<std::int32_t>(flat[d] * times[reef::at(d)]));
    all.push_back(times[reef::at(d)]);
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t repeated = list.tile(list.reshape(op.inputs[0], from), all);
  list.reshape(repeated, edit.shape(op.outputs[0]), op.outputs[0]);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, Op::RESHAPE);
}

namespace {

// The only dimension that is cut, where all before it are 1 and at least two are behind it: it and the next become one,
// and the last two stay, so that heads [3, 1, heads, tokens, channels] remain images of tokens and channels, as in
// SPLIT. -1: it is not so.
int cut_in_front(const ir::Shape& from, const ir::Shape& to) {
  int cut = -1;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == to[d]) continue;
    if (cut >= 0) return -1;
    cut = d;
  }
  const bool is_in_front = cut >= 0 && from.product(0, cut) == 1 && cut + 2 < from.rank();
  return is_in_front ? cut : -1;
}

bool slice_in_front(ChipGraph& edit, std::int32_t index, int axis, std::int64_t begin) {
  const ir::Operator op = edit.op(index);
  const ir::Shape from = edit.shape(op.inputs[0]), to = edit.shape(op.outputs[0]);
  const std::int64_t next = from.product(axis + 1, from.rank() - 2);
  const auto flat = [&](std::int64_t size) {
    return ir::Shape{1, static_cast<std::int32_t>(size * next), from.last(1), from.last()};
  };
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::array<std::int64_t, 4> at = {0, begin * next, 0, 0};
  const std::int32_t cut = list.slice_box(list.reshape(op.inputs[0], flat(from[axis])), at, flat(to[axis]));
  list.reshape(cut, to, op.outputs[0]);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, Op::RESHAPE);
}

}  // namespace

// Runs of dimensions that are kept as a whole, and those that are cut.
bool slice_on_fewer(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const ir::Shape from = edit.shape(op.inputs[0]), to = edit.shape(op.outputs[0]);
  const auto begins = begins_of(edit, op);
  if (!begins || static_cast<int>(begins->size()) != from.rank() || to.rank() != from.rank()) return false;
  if (!edit.same_quantization(op.inputs[0], op.outputs[0])) return false;
  const int front = cut_in_front(from, to);
  if (front >= 0 && slice_in_front(edit, index, front, (*begins)[reef::at(front)])) return true;
  ir::Shape flat, part;
  std::vector<std::int64_t> first;
  bool joins = false;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == 1) continue;
    const bool is_whole = to[d] == from[d];
    if (is_whole && joins) {
      flat[flat.rank() - 1] *= from[d];
      part[part.rank() - 1] *= from[d];
    } else {
      flat.push_back(from[d]);
      part.push_back(to[d]);
      first.push_back((*begins)[reef::at(d)]);
    }
    joins = is_whole;
  }
  if (flat.rank() > kMostGroups) return false;
  ir::Shape all, box;
  std::vector<std::int64_t> at;
  for (int d = flat.rank(); d < 4; ++d) {
    all.push_back(1);
    box.push_back(1);
    at.push_back(0);
  }
  for (int d = 0; d < flat.rank(); ++d) {
    all.push_back(flat[d]);
    box.push_back(part[d]);
    at.push_back(first[reef::at(d)]);
  }
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  const std::int32_t cut = list.slice_box(list.reshape(op.inputs[0], all), at, box);
  list.reshape(cut, to, op.outputs[0]);
  return edit.commit(index, list.take(), "the same on fewer dimensions", 0, Op::RESHAPE);
}

// Runs of dimensions that are not padded, and those that are.
bool pad_on_fewer(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const ir::Shape from = edit.shape(op.inputs[0]), to = edit.shape(op.outputs[0]);
  const auto amounts = edit.ints(op.inputs[1]);
  if (!amounts || static_cast<int>(amounts->size()) != 2 * from.rank() || to.rank() != from.rank()) return false;
  ir::Shape flat, padded;
  std::vector<std::int64_t> around;
  bool joins = false;
  for (int d = 0; d < from.rank(); ++d) {
    const bool is_whole = to[d] == from[d];
    if (is_whole && from[d] == 1) continue;
    if (is_whole && joins) {
      flat[flat.rank() - 1] *= from[d];
      padded[padded.rank() - 1] *= from[d];
    } else {
      flat.push_back(from[d]);
      padded.push_back(to[d]);
      around.push_back((*amounts)[reef::at(2 * d)]);
      around.push_back((*amounts)[reef::at(2 * d + 1)]);
    }
    joins = is_whole;
  }
  if (flat.rank() > kMostGroups) return false;
  ir::Shape inner, outer;
  std::vector<std::int64_t> all;
  for (int d = flat.rank(); d < 4; ++d) {
    inner.push_back(1);
    outer.push_back(1);
    all.insert(all.end(), {0, 0});
  }
  for (int d = 0; d < flat.rank(); ++d) {
    inner.push_back(flat[d]);
    outer.push_back(padded[d]);
  }
  all.insert(all.end(), around.begin(), around.end());
  OpList list(edit, edit.tensor(op.outputs[0]).name);
  ir::Operator flat_pad = op;
  flat_pad.inputs[0] = list.reshape(op.inputs[0], inner);
  flat_pad.inputs[1] = list.int_matrix(all, 2);
  return replace_on_fewer(edit, index, list, std::move(flat_pad), {outer});
}

}  // namespace reef::passes

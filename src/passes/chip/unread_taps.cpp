// SPDX-License-Identifier: Apache-2.0
// A dilated convolution whose outer taps lie beyond the image wherever the window stands: they only ever multiply
// padding, which is zero, and are left out. The atrous convolutions of DeepLab are such where the map is smaller than
// their rate: what is left of 3x3 is 1x1. The same bytes.
//
// Far-apart taps are also what a tile has no memory for, as each needs the rows of all others.
#include <algorithm>

#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int64_t kMostStep = 1 << 16;  // strides and dilations come from a file and may be any number

// One axis: result i reads inputs i * stride - before + tap * dilation.
struct Axis {
  std::int64_t inputs = 1, results = 1, taps = 1, stride = 1, dilation = 1, before = 0;

  bool reads(std::int64_t tap) const {
    for (std::int64_t i = 0; i < results; ++i) {
      const std::int64_t at = i * stride - before + tap * dilation;
      if (at >= 0 && at < inputs) return true;
    }
    return false;
  }
};

// Taps [first, last] of an axis are read, and `before` and `after` is what they need around the image.
struct Kept {
  std::int64_t first = 0, last = 0, before = 0, after = 0;
  std::int64_t taps() const { return last - first + 1; }
};

std::optional<Kept> kept_of(const Axis& axis) {
  Kept kept{0, axis.taps - 1, 0, 0};
  while (kept.first < kept.last && !axis.reads(kept.first)) ++kept.first;
  while (kept.last > kept.first && !axis.reads(kept.last)) --kept.last;
  const std::int64_t reach = (kept.taps() - 1) * axis.dilation + 1;
  kept.before = axis.before - kept.first * axis.dilation;
  kept.after = (axis.results - 1) * axis.stride + reach - axis.inputs - kept.before;
  if (kept.before < 0 || kept.after <= -axis.stride) return std::nullopt;  // rows at the edge would have to be cut off
  kept.after = std::max<std::int64_t>(kept.after, 0);
  return kept;
}

std::optional<Axis> axis_of(const ChipGraph& edit, const ir::Operator& op, int i) {
  const ir::Shape &image = edit.shape(op.inputs[0]), &filter = edit.shape(op.inputs[1]),
                  &result = edit.shape(op.outputs[0]);
  Axis axis{image[i],
            result[i],
            filter[i],
            op.attributes.get_int(i == 1 ? "stride_h" : "stride_w", 1),
            op.attributes.get_int(i == 1 ? "dilation_h_factor" : "dilation_w_factor", 1),
            0};
  if (axis.stride < 1 || axis.stride > kMostStep || axis.dilation < 1 || axis.dilation > kMostStep) return std::nullopt;
  if (axis.taps < 1 || axis.taps > kMostStep || axis.results != (axis.inputs + axis.stride - 1) / axis.stride) {
    return std::nullopt;
  }
  const std::int64_t reach = (axis.taps - 1) * axis.dilation + 1;
  axis.before = std::max<std::int64_t>((axis.results - 1) * axis.stride + reach - axis.inputs, 0) / 2;
  return axis;
}

// The taps that are kept, of weights [., rows, columns, .] of one byte each.
std::int32_t cut_weights(ChipGraph& edit, std::int32_t weights, const Kept& rows, const Kept& columns) {
  ir::Tensor tensor = edit.tensor(weights);
  const ir::Shape from = tensor.shape;
  const std::span<const std::uint8_t> data = ir::constant_data(edit.model(), tensor).span();
  std::vector<std::uint8_t> bytes;
  const auto run = static_cast<std::ptrdiff_t>(columns.taps() * from[3]);
  for (std::int64_t o = 0; o < from[0]; ++o) {
    for (std::int64_t y = rows.first; y <= rows.last; ++y) {
      const auto begin = data.begin() + ((o * from[1] + y) * from[2] + columns.first) * from[3];
      bytes.insert(bytes.end(), begin, begin + run);
    }
  }
  tensor.shape[1] = static_cast<std::int32_t>(rows.taps());
  tensor.shape[2] = static_cast<std::int32_t>(columns.taps());
  tensor.shape_signature.clear();
  return edit.add_constant(std::move(tensor), std::move(bytes));
}

bool unread_taps_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if ((op.type != Op::CONV_2D && op.type != Op::DEPTHWISE_CONV_2D) || !edit.is_sound(index)) return false;
  const std::int32_t x = op.inputs[0], weights = op.inputs[1], y = op.outputs[0];
  const ir::Shape image = edit.shape(x), filter = edit.shape(weights);
  if (!edit.affine(x) || !edit.affine(y) || image.rank() != 4 || filter.rank() != 4 || edit.shape(y).rank() != 4) {
    return false;
  }
  if (op.attributes.get_enum("padding") != "SAME" || !edit.is_constant(weights)) return false;
  if (!ir::is_integer_8(edit.tensor(weights).type) || image.elements() == 0 || filter.elements() == 0) return false;
  const auto rows = axis_of(edit, op, 1), columns = axis_of(edit, op, 2);
  if (!rows || !columns) return false;
  const auto kept_rows = kept_of(*rows), kept_columns = kept_of(*columns);
  if (!kept_rows || !kept_columns) return false;
  if (kept_rows->taps() == rows->taps && kept_columns->taps() == columns->taps) return false;
  OpList list(edit, edit.tensor(y).name);
  std::int32_t padded = x;
  if (kept_rows->before + kept_rows->after + kept_columns->before + kept_columns->after > 0) {
    const std::int64_t amounts[] = {
        0, 0, kept_rows->before, kept_rows->after, kept_columns->before, kept_columns->after, 0, 0};
    ir::Shape shape = image;
    shape[1] += static_cast<std::int32_t>(kept_rows->before + kept_rows->after);
    shape[2] += static_cast<std::int32_t>(kept_columns->before + kept_columns->after);
    padded = list.tensor_like(x, shape);
    list.add(Op::PAD, "PadOptions", {}, {x, list.int_matrix(amounts, 2)}, {padded}, edit.tensor(x).type);
  }
  ir::Attributes attributes = op.attributes;
  attributes.set("padding", ir::EnumName{"VALID"});
  if (kept_rows->taps() == 1 && kept_columns->taps() == 1) {
    attributes.set("dilation_h_factor", std::int64_t{1});
    attributes.set("dilation_w_factor", std::int64_t{1});
  }
  std::vector<std::int32_t> inputs = op.inputs;
  inputs[0] = padded;
  inputs[1] = cut_weights(edit, weights, *kept_rows, *kept_columns);
  list.add(op.type, op.options_type, std::move(attributes), std::move(inputs), {y}, edit.tensor(x).type);
  list.last().version = op.version;
  return edit.commit(index, list.take(), fmt::format("{} of the taps that are read", op.type));
}

}  // namespace

constinit const Pass unread_taps_chip_pass = {
    .name = "unread-taps",
    .summary =
        "Taps of a dilated convolution that lie beyond the image wherever its window stands are left "
        "out.",
    .at_on_chip = unread_taps_at};

}  // namespace reef::passes

// SPDX-License-Identifier: Apache-2.0
// MEAN over rows, columns or both that is too large to map: the mean of the means of equal bands. Each band's mean is
// rounded by half a step at most, and so is their mean: results differ by one step at most.
//
// MEAN of everything, channels included, where their number does not map: that of an image of one channel. Exact.
//
// MEAN over channels whose number does not map: a 1x1 CONV_2D with equal weights. The sum is exact, and rounded once.
#include <algorithm>
#include <optional>

#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostBands = 16;

std::int32_t mean(OpList& list, std::int32_t x, const std::vector<std::int64_t>& axes, std::int32_t y, bool keep,
                  ir::DataType type) {
  ir::Attributes attributes;
  attributes.set("keep_dims", keep);
  list.add(Op::MEAN, "ReducerOptions", std::move(attributes), {x, list.int_vector(axes)}, {y}, type);
  return y;
}

// A weight of 127 steps is one over the number of channels.
bool mean_of_channels(ChipGraph& edit, std::int32_t index, std::int32_t x, std::int32_t y, const Affine8& in,
                      const Affine8& out) {
  const std::int32_t channels = edit.shape(x).last();
  const std::int64_t rows = edit.shape(y).elements();
  if (in.type != ir::DataType::kInt8 || channels < 1 || edit.shape(x).elements() != rows * channels) return false;
  OpList list(edit, edit.tensor(y).name);
  const auto row_count = static_cast<std::int32_t>(rows);
  const float scale = 1.0f / (127.0f * static_cast<float>(channels));
  const std::int32_t filter = list.weights(
      {1, 1, 1, channels}, in.type, std::vector<std::uint8_t>(static_cast<std::size_t>(channels), 127), {scale}, 0, 0);
  const std::int32_t offset = list.bias({0}, {scale * in.scale});
  const std::int32_t picture = list.reshape(x, {1, 1, row_count, channels});
  const std::int32_t means = list.pointwise(picture, filter, offset, "NONE", list.tensor({1, 1, row_count, 1}, out));
  list.reshape(means, edit.shape(y), y);
  return edit.commit(index, list.take(), "a 1x1 CONV_2D with equal weights", 1);
}

// Axes that a MEAN reduces, counted from 0, ascending; empty: none, or not known.
std::vector<std::int64_t> reduced_axes(const ChipGraph& edit, const ir::Operator& op) {
  std::vector<std::int64_t> axes = edit.ints(op.inputs[1]).value_or(std::vector<std::int64_t>());
  const int rank = edit.shape(op.inputs[0]).rank();
  for (std::int64_t& axis : axes) axis += axis < 0 ? rank : 0;
  std::sort(axes.begin(), axes.end());
  return axes;
}

// The input of a MEAN as an image: `axes` are its rows, its columns, or both.
struct Area {
  ir::Shape shape;
  std::vector<std::int64_t> axes;
};

// nullopt: batches or channels are reduced, and something is left.
std::optional<Area> area_of(const ir::Shape& shape, const std::vector<std::int64_t>& axes, const ir::Shape& result) {
  // The mean of everything, channels included, is that of an image with one channel.
  if (result.elements() == 1 && shape.elements() > 1) {
    return Area{{1, 1, static_cast<std::int32_t>(shape.elements()), 1}, {1, 2}};
  }
  if (shape.rank() != 4 || shape[0] != 1 || axes[0] < 1 || axes.back() > 2) return std::nullopt;
  return Area{shape, axes};
}

// The MEAN of an image in `bands` pieces along `axis`; reduced axes keep one element.
void mean_of_bands(OpList& list, std::int32_t x, const Area& area, std::int32_t axis, std::int32_t bands,
                   const Affine8& out, std::int32_t result) {
  if (bands == 1) {
    mean(list, x, area.axes, result, true, out.type);
    return;
  }
  const std::int32_t size = area.shape[axis] / bands;
  ir::Shape one = area.shape;
  for (const std::int64_t reduced : area.axes) one[static_cast<int>(reduced)] = 1;
  std::vector<std::int32_t> parts;
  for (std::int32_t i = 0; i < bands; ++i) {
    const std::int32_t band = list.slice(x, axis, i * size, size);
    parts.push_back(mean(list, band, area.axes, list.tensor(one, out), true, out.type));
  }
  mean(list, list.concatenation(parts, axis), area.axes, result, true, out.type);
}

bool mean_of_area(ChipGraph& edit, std::int32_t index, const Area& area, std::int32_t axis, std::int32_t bands,
                  const Affine8& out) {
  const std::int32_t x = edit.op(index).inputs[0], y = edit.op(index).outputs[0];
  OpList list(edit, edit.tensor(y).name);
  const std::int32_t image = area.shape == edit.shape(x) ? x : list.reshape(x, area.shape);
  ir::Shape one = area.shape;
  for (const std::int64_t reduced : area.axes) one[static_cast<int>(reduced)] = 1;
  const bool is_result = one == edit.shape(y);
  const std::int32_t result = is_result ? y : list.tensor(one, out);
  mean_of_bands(list, image, area, axis, bands, out, result);
  if (!is_result) list.reshape(result, edit.shape(y), y);
  const std::string what = bands == 1 ? "MEAN of one channel" : fmt::format("MEAN of {} bands", bands);
  return edit.commit(index, list.take(), what, bands == 1 ? 0 : 1);
}

bool mean_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != Op::MEAN || !edit.is_sound(index) || !edit.options().fits) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x);
  const auto in = edit.affine(x), out = edit.affine(y);
  const std::vector<std::int64_t> axes = reduced_axes(edit, op);
  if (!in || !out || in->type != out->type || axes.empty() || edit.fits(index)) return false;
  if (axes.size() == 1 && axes[0] == shape.rank() - 1) return mean_of_channels(edit, index, x, y, *in, *out);
  const auto area = area_of(shape, axes, edit.shape(y));
  if (!area) return false;
  for (std::int32_t bands = area->shape == shape ? 2 : 1; bands <= kMostBands; ++bands) {
    for (const std::int64_t axis : area->axes) {
      const auto cut = static_cast<std::int32_t>(axis);
      if (area->shape[cut] % bands == 0 && mean_of_area(edit, index, *area, cut, bands, *out)) return true;
    }
  }
  return false;
}

}  // namespace

constinit const Pass mean_chip_pass = {
    .name = "mean",
    .summary =
        "MEAN over an area too large to map becomes the MEAN of the means of equal bands; over channels whose "
        "number does not map, a 1x1 CONV_2D, or the MEAN of one channel.",
    .safety = Safety::kRounding,
    .at_on_chip = mean_at};

}  // namespace reef::passes

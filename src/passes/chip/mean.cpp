// SPDX-License-Identifier: Apache-2.0
// MEAN over an area too large to map: the mean of the means of equal bands. Each band's mean is rounded by half a step
// at most, and so is their mean: results differ by one step at most.
//
// MEAN over channels whose number does not map: a 1x1 CONV_2D with equal weights. The sum is exact, and rounded once.
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostBands = 16;

std::int32_t mean(OpList& list, std::int32_t x, std::int32_t y, bool keep, const Affine8& affine) {
  const std::int64_t axes[] = {1, 2};
  const std::int32_t dimensions = list.int_vector(axes);
  ir::Attributes attributes;
  attributes.set("keep_dims", keep);
  list.add("MEAN", "ReducerOptions", std::move(attributes), {x, dimensions}, {y}, affine.type);
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

bool at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  if (op.type != "MEAN" || !edit.is_sound(index) || !edit.options().fits) return false;
  const std::int32_t x = op.inputs[0], y = op.outputs[0];
  const ir::Shape shape = edit.shape(x);
  const auto in = edit.affine(x), out = edit.affine(y);
  auto axes = edit.ints(op.inputs[1]);
  if (!in || !out || in->type != out->type || !axes || shape.rank() == 0) return false;
  if (axes->size() == 1 && ((*axes)[0] == -1 || (*axes)[0] == shape.rank() - 1)) {
    return !edit.fits(index) && mean_of_channels(edit, index, x, y, *in, *out);
  }
  if (shape.rank() != 4 || axes->size() != 2) return false;
  for (std::int64_t& axis : *axes) axis += axis < 0 ? 4 : 0;
  std::sort(axes->begin(), axes->end());
  if ((*axes)[0] != 1 || (*axes)[1] != 2 || edit.fits(index)) return false;
  const bool keep = op.attributes.get_bool("keep_dims");
  for (std::int32_t bands = 2; bands <= kMostBands; ++bands) {
    if (shape[1] % bands != 0) continue;
    OpList list(edit, edit.tensor(y).name);
    std::vector<std::int32_t> parts;
    for (std::int32_t i = 0; i < bands; ++i) {
      const std::int32_t rows = shape[1] / bands;
      const std::int32_t band = list.slice(x, 1, i * rows, rows);
      parts.push_back(mean(list, band, list.tensor({1, 1, 1, shape[3]}, *out), true, *out));
    }
    mean(list, list.concatenation(parts, 1), y, keep, *out);
    if (edit.commit(index, list.take(), fmt::format("MEAN of {} bands", bands), 1)) return true;
  }
  return false;
}

}  // namespace

extern const Pass mean_chip_pass;
constinit const Pass mean_chip_pass = {
    .name = "mean",
    .summary =
        "MEAN over an area too large to map becomes the MEAN of the means of equal bands; over channels whose "
        "number does not map, a 1x1 CONV_2D.",
    .safety = Safety::kRounding,
    .on_by_default = true,
    .at_on_chip = at};

}  // namespace reef::passes

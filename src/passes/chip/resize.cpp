// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of sizes that do not map, in other words:
//  - to the same size: nothing at all;
//  - from one pixel: copies of it (TILE, or CONCATENATION);
//  - nearest by a whole factor: each pixel joined with itself along the channels, which become columns, and then the
//    same for rows;
//  - of more elements than map: some channels at a time;
//  - bilinear, rows first and then columns: each axis by itself has coarser weights (a half-pixel factor of 8 multiples
//    of 1/16 instead of 1/256), and a map of P by P phases takes 2 P convolutions instead of P * P;
//  - bilinear by a power of two: two steps. The points in between lie on the same straight lines, so that only the
//    rounding after the first step counts: half a step of the scale at most, and the result differs by one at most;
//  - bilinear by any other factor: a product with a matrix of weights for each axis (a 1x1 CONV_2D along it).
#include <algorithm>
#include <cmath>

#include "kernels/resize/resize.h"
#include "passes/pass.h"

namespace reef::passes {
namespace {

constexpr std::int32_t kMostCopies = 64;
constexpr std::int32_t kMostChannelParts = 16;
constexpr std::int64_t kLargeMap = 1 << 20;  // elements; smaller ones have another reason not to map
constexpr std::int32_t kMostFactor = 8;      // up to here TFLite's floating-point positions round as exact ones do

struct Sizes {
  std::int32_t x = 0, y = 0;         // tensors
  std::int32_t h = 0, w = 0, c = 0;  // before
  std::int32_t to_h = 0, to_w = 0;   // after
  bool align_corners = false, half_pixel = false;
};

bool drop(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  if (edit.is_graph_output(s.y)) {
    OpList list(edit, edit.tensor(s.y).name);
    list.reshape(s.x, edit.shape(s.x), s.y);
    return edit.commit(index, list.take(), "a copy");
  }
  edit.redirect(s.y, s.x);
  edit.commit_anyway(index, {}, "nothing: it changes nothing");
  return true;
}

bool copies(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  OpList tile(edit, edit.tensor(s.y).name);
  const std::int64_t multiples[] = {1, s.to_h, s.to_w, 1};
  tile.tile(s.x, multiples, s.y);
  // Without someone who knows whether TILE maps, the form that always does.
  if (edit.options().fits && edit.commit(index, tile.take(), "TILE")) return true;
  if (s.to_h > kMostCopies || s.to_w > kMostCopies) return false;
  OpList join(edit, edit.tensor(s.y).name);
  const std::vector<std::int32_t> columns(static_cast<std::size_t>(s.to_w), s.x);
  const std::int32_t row = s.to_w == 1 ? s.x : join.concatenation(columns, 2, s.to_h == 1 ? s.y : kNew);
  if (s.to_h > 1) join.concatenation(std::vector<std::int32_t>(static_cast<std::size_t>(s.to_h), row), 1, s.y);
  return edit.commit(index, join.take(), "CONCATENATION");
}

bool repeat(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  const std::int32_t down = s.to_h / s.h, across = s.to_w / s.w;
  OpList list(edit, edit.tensor(s.y).name);
  std::int32_t wide = s.x;
  if (across > 1) {
    wide = list.concatenation(std::vector<std::int32_t>(static_cast<std::size_t>(across), s.x), 3);
    wide = list.reshape(wide, {1, s.h, s.to_w, s.c}, down == 1 ? s.y : kNew);
  }
  if (down > 1) {
    const std::int32_t rows = list.reshape(wide, {1, s.h, 1, s.to_w * s.c});
    const std::vector<std::int32_t> parts(static_cast<std::size_t>(down), rows);
    list.reshape(list.concatenation(parts, 2), {1, s.to_h, s.to_w, s.c}, s.y);
  }
  return edit.commit(index, list.take(), "CONCATENATION and RESHAPE");
}

// How often `to` holds `from`, as the mode counts; 0: not a whole number of times.
std::int32_t factor(std::int32_t from, std::int32_t to, bool align_corners) {
  const std::int32_t a = align_corners ? from - 1 : from, b = align_corners ? to - 1 : to;
  return a > 0 && b % a == 0 ? b / a : 0;
}

// By way of a map of h by w pixels. What the first step rounds, by half a step at most, the second only averages.
bool by_way_of(ChipGraph& edit, std::int32_t index, const Sizes& s, std::int32_t h, std::int32_t w,
               std::string_view into) {
  const ir::Operator op = edit.op(index);
  OpList list(edit, edit.tensor(s.y).name);
  const std::int64_t between[] = {h, w}, last[] = {s.to_h, s.to_w};
  const std::int32_t sizes = list.int_vector(between), final_sizes = list.int_vector(last);
  const std::int32_t step = list.tensor_like(s.x, {1, h, w, s.c});
  list.add(op.type, op.options_type, op.attributes, {s.x, sizes}, {step}, edit.tensor(s.x).type);
  list.last().version = op.version;
  list.add(op.type, op.options_type, op.attributes, {step, final_sizes}, {s.y}, edit.tensor(s.x).type);
  list.last().version = op.version;
  return edit.commit(index, list.take(), into, 1);
}

// The axis first that leaves the smaller map in between.
bool axis_by_axis(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  if (s.h == s.to_h || s.w == s.to_w || !edit.options().fits) return false;
  const bool rows_first = std::int64_t{s.to_h} * s.w <= std::int64_t{s.h} * s.to_w;
  return by_way_of(edit, index, s, rows_first ? s.to_h : s.h, rows_first ? s.w : s.to_w, "a step for each axis");
}

// Maps of more elements than one resizing gives: some channels at a time.
bool by_channels(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  if (!edit.options().fits || edit.shape(s.y).elements() < kLargeMap) return false;
  const ir::Operator op = edit.op(index);
  for (std::int32_t count = 2; count <= kMostChannelParts; ++count) {
    if (s.c % count != 0) continue;
    OpList list(edit, edit.tensor(s.y).name);
    std::vector<std::int32_t> parts;
    for (const std::int32_t piece : list.split(s.x, 3, count)) {
      parts.push_back(list.tensor_like(s.y, {1, s.to_h, s.to_w, s.c / count}));
      list.add(op.type, op.options_type, op.attributes, {piece, op.inputs[1]}, {parts.back()}, edit.tensor(s.x).type);
      list.last().version = op.version;
    }
    list.concatenation(parts, 3, s.y);
    if (edit.commit(index, list.take(), fmt::format("{} of {} parts of the channels", op.type, count))) return true;
  }
  return false;
}

bool two_steps(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  // Positions of pixel centres do not nest.
  if (s.half_pixel || !edit.options().fits) return false;
  const std::int32_t down = factor(s.h, s.to_h, s.align_corners), across = factor(s.w, s.to_w, s.align_corners);
  const auto is_power_of_two = [](std::int32_t n) { return n > 0 && (n & (n - 1)) == 0; };
  if (!is_power_of_two(down) || !is_power_of_two(across) || down * across < 4) return false;
  const auto middle = [&](std::int32_t from, std::int32_t by) {
    return s.align_corners ? (from - 1) * by + 1 : from * by;
  };
  for (std::int32_t first = 2; first < std::max(down, across); first *= 2) {
    const std::int32_t h = middle(s.h, std::min(first, down)), w = middle(s.w, std::min(first, across));
    if (by_way_of(edit, index, s, h, w, "two steps")) return true;
  }
  return false;
}

// One axis of a bilinear resizing as a matrix: [to, 1, 1, from] in steps of a scale of each row's own.
struct AxisWeights {
  std::vector<std::uint8_t> steps;  // int8
  std::vector<float> scales;
};

// Two steps whose quotient is nearest to (1 - share) : share. Their sum is 1 / scale, so that a flat map stays as it is
// and the quotient is off by 1 / 256 at most.
std::pair<int, int> two_weights(double share) {
  std::pair<int, int> best = {1, 0};
  double error = share;
  for (int sum = 1; sum <= 254; ++sum) {
    const int second = static_cast<int>(std::lround(share * sum)), first = sum - second;
    const double off = std::abs(static_cast<double>(second) / sum - share);
    if (first > 127 || second > 127 || off >= error - 1e-9) continue;
    best = {first, second};
    error = off;
  }
  return best;
}

AxisWeights axis_weights(std::int32_t from, std::int32_t to, const Sizes& s) {
  AxisWeights result;
  result.steps.assign(static_cast<std::size_t>(to) * static_cast<std::size_t>(from), 0);
  for (std::int32_t i = 0; i < to; ++i) {
    const auto units = static_cast<double>(kernels::resize_place(i, from, to, s.align_corners, s.half_pixel));
    const double place = std::clamp(units / static_cast<double>(kernels::kResizeUnits), 0.0, from - 1.0);
    const auto lower = static_cast<std::int32_t>(place);
    const auto [first, second] = two_weights(place - lower);
    const std::size_t row = static_cast<std::size_t>(i) * static_cast<std::size_t>(from);
    result.steps[row + static_cast<std::size_t>(lower)] = static_cast<std::uint8_t>(first);
    if (second > 0) result.steps[row + static_cast<std::size_t>(lower) + 1] = static_cast<std::uint8_t>(second);
    result.scales.push_back(1.0f / static_cast<float>(first + second));
  }
  return result;
}

// The last axis of [1, a, b, from] becomes one of `to`.
std::int32_t along_last(OpList& list, std::int32_t x, const ir::Shape& shape, std::int32_t to, const Sizes& s,
                        const Affine8& affine) {
  AxisWeights weights = axis_weights(shape[3], to, s);
  std::vector<float> bias_scales = weights.scales;
  for (float& scale : bias_scales) scale *= affine.scale;
  const std::int32_t filter =
      list.weights({to, 1, 1, shape[3]}, affine.type, std::move(weights.steps), std::move(weights.scales), 0, 0);
  const std::int32_t bias = list.bias(std::vector<std::int32_t>(static_cast<std::size_t>(to), 0), bias_scales);
  return list.pointwise(x, filter, bias, "NONE", list.tensor({1, shape[1], shape[2], to}, affine));
}

// Rows and columns take turns as the innermost axis. Each product is off by one step for its weights (where neighbours
// are as far apart as they can be) and half a step for its rounding.
bool by_products(ChipGraph& edit, std::int32_t index, const Sizes& s) {
  constexpr std::int64_t kMostWeights = 1 << 16;  // beyond it the CPU is faster
  const auto affine = edit.affine(s.x);
  if (!edit.options().fits || affine->type != ir::DataType::kInt8 ||
      std::max(std::int64_t{s.h} * s.to_h, std::int64_t{s.w} * s.to_w) > kMostWeights) {
    return false;
  }
  OpList list(edit, edit.tensor(s.y).name);
  const int rows_last[] = {0, 2, 3, 1}, columns_last[] = {0, 3, 2, 1}, channels_last[] = {0, 1, 3, 2};
  std::int32_t x = list.transpose(s.x, rows_last);
  x = along_last(list, x, {1, s.w, s.c, s.h}, s.to_h, s, *affine);
  x = list.transpose(x, columns_last);
  x = along_last(list, x, {1, s.to_h, s.c, s.w}, s.to_w, s, *affine);
  list.transpose(x, channels_last, s.y);
  return edit.commit(index, list.take(), "a CONV_2D along each axis", 3);
}

bool resize_at(ChipGraph& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const bool nearest = op.type == Op::RESIZE_NEAREST_NEIGHBOR;
  if ((!nearest && op.type != Op::RESIZE_BILINEAR) || !edit.is_sound(index) || !edit.is_constant(op.inputs[1]))
    return false;
  Sizes s{op.inputs[0], op.outputs[0]};
  const ir::Shape in = edit.shape(s.x), out = edit.shape(s.y);
  if (in.rank() != 4 || out.rank() != 4 || in[0] != 1 || out[0] != 1 || in[3] != out[3] || in.elements() == 0) {
    return false;
  }
  if (!edit.affine(s.x) || !edit.same_quantization(s.x, s.y) || out.elements() == 0 || edit.fits(index)) return false;
  s.h = in[1], s.w = in[2], s.c = in[3], s.to_h = out[1], s.to_w = out[2];
  s.align_corners = op.attributes.get_bool("align_corners");
  s.half_pixel = op.attributes.get_bool("half_pixel_centers");
  if (in == out) return drop(edit, index, s);
  if (s.h == 1 && s.w == 1) return copies(edit, index, s);
  if (by_channels(edit, index, s)) return true;
  if (!nearest) return axis_by_axis(edit, index, s) || two_steps(edit, index, s) || by_products(edit, index, s);
  const std::int32_t down = factor(s.h, s.to_h, false), across = factor(s.w, s.to_w, false);
  if (s.align_corners || down < 1 || across < 1 || down > kMostFactor || across > kMostFactor) return false;
  return repeat(edit, index, s);
}

}  // namespace

constinit const Pass resize_chip_pass = {
    .name = "resize",
    .summary =
        "Resizing that does not map: to the same size is dropped, from one pixel becomes copies, large maps "
        "are resized by parts of their channels, "
        "nearest by a whole factor becomes CONCATENATION, bilinear takes a step for each axis, two by powers "
        "of two, or a CONV_2D along each axis.",
    .safety = Safety::kRounding,
    .at_on_chip = resize_at};

}  // namespace reef::passes

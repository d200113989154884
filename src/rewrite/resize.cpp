// SPDX-License-Identifier: Apache-2.0
// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR of sizes that do not map, in other words:
//  - to the same size: nothing at all;
//  - from one pixel: copies of it (TILE, or CONCATENATION);
//  - nearest by a whole factor: each pixel joined with itself along the channels, which become columns, and then the
//    same for rows;
//  - bilinear by a power of two: two steps. The points in between lie on the same straight lines, so that only the
//    rounding after the first step counts: half a step of the scale at most, and the result differs by one at most.
#include <numeric>

#include "rewrite/op_list.h"
#include "rewrite/rewrite_def.h"

namespace reef::rewrite {
namespace {

constexpr std::int32_t kMostCopies = 64;
constexpr std::int32_t kMostFactor = 8;  // up to here TFLite's floating-point positions round as exact ones do

struct Sizes {
  std::int32_t x = 0, y = 0;         // tensors
  std::int32_t h = 0, w = 0, c = 0;  // before
  std::int32_t to_h = 0, to_w = 0;   // after
  bool align_corners = false, half_pixel = false;
};

bool drop(GraphEdit& edit, std::int32_t index, const Sizes& s) {
  if (edit.is_graph_output(s.y)) {
    OpList list(edit, edit.tensor(s.y).name);
    list.reshape(s.x, edit.shape(s.x), s.y);
    return edit.commit(index, list.take(), "a copy");
  }
  edit.replace_uses(s.y, s.x);
  edit.commit_anyway(index, {}, "nothing: it changes nothing");
  return true;
}

bool copies(GraphEdit& edit, std::int32_t index, const Sizes& s) {
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

bool repeat(GraphEdit& edit, std::int32_t index, const Sizes& s) {
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

bool two_steps(GraphEdit& edit, std::int32_t index, const Sizes& s) {
  // Positions of pixel centres do not nest.
  if (s.half_pixel || !edit.options().fits) return false;
  const std::int32_t down = factor(s.h, s.to_h, s.align_corners), across = factor(s.w, s.to_w, s.align_corners);
  const auto is_power_of_two = [](std::int32_t n) { return n > 0 && (n & (n - 1)) == 0; };
  if (!is_power_of_two(down) || !is_power_of_two(across) || down * across < 4) return false;
  const ir::Operator op = edit.op(index);
  const auto middle = [&](std::int32_t from, std::int32_t by) {
    return s.align_corners ? (from - 1) * by + 1 : from * by;
  };
  for (std::int32_t first = 2; first < std::max(down, across); first *= 2) {
    const std::int32_t h = middle(s.h, std::min(first, down)), w = middle(s.w, std::min(first, across));
    OpList list(edit, edit.tensor(s.y).name);
    const std::int64_t between[] = {h, w}, last[] = {s.to_h, s.to_w};
    const std::int32_t sizes = list.int_vector(between), final_sizes = list.int_vector(last);
    const std::int32_t step = list.tensor_like(s.x, {1, h, w, s.c});
    list.add(op.type, op.options_type, op.attributes, {s.x, sizes}, {step}, edit.tensor(s.x).type);
    list.last().version = op.version;
    list.add(op.type, op.options_type, op.attributes, {step, final_sizes}, {s.y}, edit.tensor(s.x).type);
    list.last().version = op.version;
    if (edit.commit(index, list.take(), "two steps", 1)) return true;
  }
  return false;
}

bool at(GraphEdit& edit, std::int32_t index) {
  const ir::Operator op = edit.op(index);
  const bool nearest = op.type == "RESIZE_NEAREST_NEIGHBOR";
  if ((!nearest && op.type != "RESIZE_BILINEAR") || !edit.is_sound(index) || !edit.is_constant(op.inputs[1]))
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
  if (!nearest) return two_steps(edit, index, s);
  const std::int32_t down = factor(s.h, s.to_h, false), across = factor(s.w, s.to_w, false);
  if (s.align_corners || down < 1 || across < 1 || down > kMostFactor || across > kMostFactor) return false;
  return repeat(edit, index, s);
}

}  // namespace

extern const Rewrite resize_rewrite;
constinit const Rewrite resize_rewrite = {
    .info = {.name = "resize",
             .summary = "Resizing that does not map: to the same size is dropped, from one pixel becomes copies, "
                        "nearest by a whole factor becomes CONCATENATION, bilinear by a power of two takes two steps.",
             .safety = Safety::kRounding,
             .on_by_default = true},
    .at = at};

}  // namespace reef::rewrite

// SPDX-License-Identifier: Apache-2.0
// Layers that move elements, of described networks.
#include <algorithm>
#include <numeric>

#include "random_network_builder.h"

namespace reef::testing {
namespace {

constexpr int kMostWeight = 128;  // of bilinear interpolation: the sum of all, which has 8 bits

}  // namespace

// numbers: to which shape
std::int32_t NetworkBuilder::reshape(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  const ir::Shape in = shape(x);
  const auto all = static_cast<std::int32_t>(in.elements());
  ir::Shape to{1, all};
  if (!is_image(x)) to = {1, 1, 1, all};
  if (is_image(x) && n[0] % 3 == 1) to = {1, in[2], in[1], in[3]};
  if (is_image(x) && n[0] % 3 == 2) to = {1, 1, in[1] * in[2], in[3]};
  ir::Attributes a;
  a.set("new_shape", std::vector<std::int64_t>(to.begin(), to.end()));
  return op(layer.op, {x, model_.ints(to.dims())}, {model_.computed(to, of(x))}, "ReshapeOptions", a);
}

// numbers: which order
std::int32_t NetworkBuilder::transpose(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  constexpr std::array<std::array<int, 4>, 5> kOrders = {
      {{0, 2, 1, 3}, {0, 1, 3, 2}, {0, 3, 2, 1}, {0, 2, 3, 1}, {0, 3, 1, 2}}};
  const auto& order = kOrders[static_cast<std::size_t>(n[0]) % kOrders.size()];
  ir::Shape to;
  for (const int axis : order) to.push_back(shape(x)[axis]);
  return op(layer.op, {x, model_.ints({order.begin(), order.end()})}, {model_.computed(to, of(x))}, "TransposeOptions",
            {}, 2);
}

// numbers: before and behind rows and columns
std::int32_t NetworkBuilder::pad(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const ir::Shape in = shape(x);
  const std::vector<std::int32_t> amounts = {0, 0, n[0] % 3, n[1] % 3, n[2] % 3, n[3] % 3, 0, n[4] % 12 == 11 ? 2 : 0};
  const ir::Shape to{1, in[1] + amounts[2] + amounts[3], in[2] + amounts[4] + amounts[5], in[3] + amounts[7]};
  return op(layer.op, {x, model_.ints(amounts, {4, 2})}, {model_.computed(to, of(x))}, "PadOptions", {});
}

// numbers: which axis
std::int32_t NetworkBuilder::concatenation(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const int axis = 3 - n[0] % 3;
  const std::int32_t y = other(layer.b, [&](std::int32_t value) {
    if (!is_image(value) || value == x || !same_quantization(x, value)) return false;
    for (int d = 1; d < 4; ++d) {
      if (d != axis && shape(value)[d] != shape(x)[d]) return false;
    }
    return true;
  });
  if (y == kNoValue) return kNoValue;
  ir::Shape to = shape(x);
  to[axis] += shape(y)[axis];
  if (to.elements() > kMostElements) return kNoValue;
  ir::Attributes a;
  a.set("axis", number(axis));
  a.set("fused_activation_function", word("NONE"));
  return op(layer.op, {x, y}, {model_.computed(to, of(x))}, "ConcatenationOptions", a, 2);
}

// numbers: how much to leave away at the beginning of rows, columns, channels; step
std::int32_t NetworkBuilder::slice(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const ir::Shape in = shape(x);
  const bool strided = layer.op == "STRIDED_SLICE";
  std::vector<std::int32_t> begin = {0, n[0] % 3, n[1] % 3, n[2] % 5}, end = {1, in[1], in[2], in[3]};
  std::vector<std::int32_t> steps = {1, strided ? 1 + n[3] % 2 : 1, strided ? 1 + n[3] / 2 % 2 : 1, 1};
  ir::Shape to{1};
  for (int d = 1; d < 4; ++d) {
    const auto k = static_cast<std::size_t>(d);
    if (begin[k] >= end[k]) begin[k] = 0;
    if (n[4] % 2 == 1 && end[k] - begin[k] > 1) --end[k];
    to.push_back((end[k] - begin[k] + steps[k] - 1) / steps[k]);
  }
  const std::int32_t out = model_.computed(to, of(x));
  if (!strided) {
    return op(layer.op, {x, model_.ints(begin), model_.ints(to.dims())}, {out}, "SliceOptions", {}, 2);
  }
  ir::Attributes a;
  for (const char* mask : {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"}) {
    a.set(mask, number(0));
  }
  return op(layer.op, {x, model_.ints(begin), model_.ints(end), model_.ints(steps)}, {out}, "StridedSliceOptions", a,
            2);
}

// numbers: which axis, where
std::int32_t NetworkBuilder::split(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const int axis = 3 - n[0] % 3;
  const bool any_sizes = layer.op == "SPLIT_V";
  ir::Shape to = shape(x), rest = to;
  if (any_sizes ? to[axis] < 2 : to[axis] % 2 != 0) return kNoValue;
  to[axis] = any_sizes ? 1 + n[1] % (to[axis] - 1) : to[axis] / 2;
  rest[axis] -= to[axis];
  ir::Attributes a;
  a.set("num_splits", number(2));
  const std::int32_t first = model_.computed(to, of(x)), second = model_.computed(rest, of(x));
  const std::int32_t along = model_.ints({axis}, ir::Shape{});
  if (!any_sizes) return op(layer.op, {along, x}, {first, second}, "SplitOptions", a, 2);
  return op(layer.op, {x, model_.ints({to[axis], rest[axis]}), along}, {first, second}, "SplitVOptions", a, 2);
}

std::int32_t NetworkBuilder::tile(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const std::vector<std::int32_t> times = {1, 1 + n[0] % 2, 1 + n[1] % 2, 1 + n[2] % 2};
  ir::Shape to{1};
  for (int d = 1; d < 4; ++d) to.push_back(shape(x)[d] * times[static_cast<std::size_t>(d)]);
  if (to.elements() > kMostElements) return kNoValue;
  return op(layer.op, {x, model_.ints(times)}, {model_.computed(to, of(x))}, "TileOptions", {}, 2);
}

std::int32_t NetworkBuilder::blocks(const RandomLayer& layer, std::int32_t x, const Numbers&) {
  if (!is_image(x)) return kNoValue;
  const ir::Shape in = shape(x);
  const bool to_depth = layer.op == "SPACE_TO_DEPTH";
  if (to_depth ? in[1] % 2 + in[2] % 2 != 0 : in[3] % 4 != 0) return kNoValue;
  const ir::Shape to =
      to_depth ? ir::Shape{1, in[1] / 2, in[2] / 2, in[3] * 4} : ir::Shape{1, in[1] * 2, in[2] * 2, in[3] / 4};
  ir::Attributes a;
  a.set("block_size", number(2));
  return op(layer.op, {x}, {model_.computed(to, of(x))}, to_depth ? "SpaceToDepthOptions" : "DepthToSpaceOptions", a,
            to_depth ? 2 : 1);
}

// How many pixels an axis gets: twice as many, a multiple, a multiple between the first and the last, any number.
int NetworkBuilder::resized(int size, int n) {
  const int more = n / 4, times = 1 + more % 5;
  return n % 4 == 0 ? 2 * size : n % 4 == 1 ? times * size : n % 4 == 2 ? times * (size - 1) + 1 : 1 + more;
}

// The smallest part of a pixel that positions along an axis are multiples of.
int NetworkBuilder::position_denominator(int from, int to, bool align_corners, bool half_pixels) {
  const int trim = align_corners && to > 1 ? 1 : 0, in = from - trim, out = to - trim;
  if (in < 1 || from == 1) return 1;
  if (!half_pixels) return out / std::gcd(in, out);
  return 2 * out / std::gcd(std::gcd(2 * in, in - out), 2 * out);
}

// numbers: corners or centers, rows, columns, whether these count
std::int32_t NetworkBuilder::resize(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  if (!is_image(x)) return kNoValue;
  const ir::Shape in = shape(x);
  const bool bilinear = layer.op == "RESIZE_BILINEAR", half = n[0] % 3 == 1;
  bool align = n[0] % 3 == 2;
  ir::Shape to{1, 2 * in[1], 2 * in[2], in[3]};
  if (n[3] % 2 == 1) {
    to = {1, resized(in[1], n[1]), resized(in[2], n[2]), in[3]};
  } else {
    align = false;
  }
  if (to.elements() > kMostElements) return kNoValue;
  // Bilinear weights have 8 bits.
  if (bilinear &&
      position_denominator(in[1], to[1], align, half) * position_denominator(in[2], to[2], align, half) > kMostWeight) {
    return kNoValue;
  }
  ir::Attributes a;
  a.set("align_corners", align);
  a.set("half_pixel_centers", half);
  return op(layer.op, {x, model_.ints({to[1], to[2]})}, {model_.computed(to, of(x))},
            bilinear ? "ResizeBilinearOptions" : "ResizeNearestNeighborOptions", a, 3);
}

// SQUEEZE, EXPAND_DIMS. numbers: which dimension gets in
std::int32_t NetworkBuilder::other_rank(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  const ir::Shape in = shape(x);
  ir::Shape to;
  ir::Attributes a;
  if (layer.op == "SQUEEZE") {
    std::vector<std::int64_t> dropped;
    for (int d = 1; d < in.rank() - 1; ++d) {
      if (in[d] == 1) dropped.push_back(d);
    }
    if (dropped.empty()) return kNoValue;
    for (int d = 0; d < in.rank(); ++d) {
      if (std::find(dropped.begin(), dropped.end(), d) == dropped.end()) to.push_back(in[d]);
    }
    a.set("squeeze_dims", dropped);
    return op(layer.op, {x}, {model_.computed(to, of(x))}, "SqueezeOptions", a);
  }
  if (in.rank() > 3) return kNoValue;
  const int at = 1 + n[0] % in.rank();
  for (int d = 0; d <= in.rank(); ++d) to.push_back(d == at ? 1 : in[d < at ? d : d - 1]);
  return op(layer.op, {x, model_.ints({at})}, {model_.computed(to, of(x))}, "ExpandDimsOptions", {});
}

// numbers: which dimension
std::int32_t NetworkBuilder::pack(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  const ir::Shape in = shape(x);
  if (in.rank() > 3 || 2 * in.elements() > kMostElements) return kNoValue;
  const std::int32_t y =
      other(layer.b, [&](std::int32_t value) { return shape(value) == in && same_quantization(value, x); });
  const int at = 1 + n[0] % in.rank();
  ir::Shape to;
  for (int d = 0; d <= in.rank(); ++d) to.push_back(d == at ? 2 : in[d < at ? d : d - 1]);
  ir::Attributes a;
  a.set("axis", number(at));
  a.set("values_count", number(2));
  return op(layer.op, {x, y}, {model_.computed(to, of(x))}, "PackOptions", a);
}

// numbers: which dimension, of few elements
std::int32_t NetworkBuilder::unpack(const RandomLayer& layer, std::int32_t x, const Numbers& n) {
  constexpr int kMostParts = 8;
  const ir::Shape in = shape(x);
  const int at = in.rank() > 1 ? 1 + n[0] % (in.rank() - 1) : 0;
  if (in.rank() < 3 || in[at] > kMostParts) return kNoValue;
  ir::Shape to;
  for (int d = 0; d < in.rank(); ++d) {
    if (d != at) to.push_back(in[d]);
  }
  std::vector<std::int32_t> parts;
  for (int i = 0; i < in[at]; ++i) parts.push_back(model_.computed(to, of(x)));
  ir::Attributes a;
  a.set("axis", number(at));
  a.set("num", number(in[at]));
  return op(layer.op, {x}, parts, "UnpackOptions", a);
}

}  // namespace reef::testing

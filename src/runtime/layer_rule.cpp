// SPDX-License-Identifier: Apache-2.0
// From what a result is made of to which element it is.
#include <algorithm>

#include "runtime/layer_rules.h"

namespace reef::runtime {

Rule::Weight Rule::weight_at(std::int32_t index) const {
  std::int64_t rest = index;
  Weight weight;
  if (shape.kind == darwinn::LayerKind::kDepthwise) {
    weight.out = weight.in = rest % shape.output_channels;
    rest /= shape.output_channels;
    weight.kx = rest % shape.kernel_width, weight.ky = rest / shape.kernel_width;
    return weight;
  }
  weight.in = rest % shape.input_channels;
  rest /= shape.input_channels;
  weight.kx = rest % shape.kernel_width;
  rest /= shape.kernel_width;
  weight.ky = rest % shape.kernel_height, weight.out = rest / shape.kernel_height;
  return weight;
}

std::int64_t Rule::result_of(std::int32_t place, std::int32_t index) const {
  const Weight weight = weight_at(index);
  if (shape.kind == darwinn::LayerKind::kFullyConnected) {
    if (place % shape.input_channels != weight.in) return kContradiction;
    const std::int64_t result = place / shape.input_channels * shape.output_channels + weight.out;
    return result < elements ? result : kOutside;
  }
  const Geometry& g = geometry;
  const std::int64_t channel = place % g.in_depth, column = place / g.in_depth % g.in_width,
                     row = place / (g.in_depth * g.in_width) % g.in_height,
                     batch = place / (g.in_depth * g.in_width * g.in_height);
  if (channel != weight.in) return kContradiction;
  const std::int64_t y = row + g.pad_top - weight.ky * g.dilation_h, x = column + g.pad_left - weight.kx * g.dilation_w;
  // Results beyond the tensor, or between strides, are computed along and thrown away.
  if (y < 0 || x < 0 || y % g.stride_h != 0 || x % g.stride_w != 0) return kOutside;
  if (y / g.stride_h >= g.out_height || x / g.stride_w >= g.out_width || weight.out >= g.out_depth) return kOutside;
  const std::int64_t result =
      ((batch * g.out_height + y / g.stride_h) * g.out_width + x / g.stride_w) * g.out_depth + weight.out;
  return result < elements ? result : kOutside;
}

bool Rule::takes_constant(std::int64_t result, std::int32_t index) const {
  const Weight weight = weight_at(index);
  std::int64_t place = 0;
  if (shape.kind == darwinn::LayerKind::kFullyConnected) {
    place = result / shape.output_channels * shape.input_channels + weight.in;
  } else {
    const Geometry& g = geometry;
    const std::int64_t x = result / g.out_depth % g.out_width * g.stride_w - g.pad_left + weight.kx * g.dilation_w;
    const std::int64_t y =
        result / (g.out_depth * g.out_width) % g.out_height * g.stride_h - g.pad_top + weight.ky * g.dilation_h;
    const std::int64_t batch = result / (g.out_depth * g.out_width * g.out_height);
    if (y < 0 || x < 0 || y >= g.in_height || x >= g.in_width) return true;
    place = ((batch * g.in_height + y) * g.in_width + x) * g.in_depth + weight.in;
  }
  return place < static_cast<std::int64_t>(constants->size()) && (*constants)[at(place)];
}

std::int64_t Rule::result_of_constants(std::int32_t index) const {
  const bool is_one_pixel = shape.kind != darwinn::LayerKind::kFullyConnected && geometry.out_height == 1 &&
                            geometry.out_width == 1 && elements == geometry.out_depth;
  return is_one_pixel ? weight_at(index).out : kOutside;
}

void Rule::widen(WindowSpan& span, std::int32_t place) const {
  if (!reduced.empty()) {
    const std::int64_t result = reduced[at(place)];
    span.is_contradictory |= span.channel >= 0 && span.channel != result;
    span.channel = result;
    return;
  }
  const Geometry& g = geometry;
  const std::int64_t channel = place % g.in_depth, column = place / g.in_depth % g.in_width,
                     row = place / (g.in_depth * g.in_width) % g.in_height,
                     batch = place / (g.in_depth * g.in_width * g.in_height);
  if (span.channel < 0) {
    span = {batch, channel, row, row, column, column, false};
    return;
  }
  span.is_contradictory |= span.channel != channel || span.batch != batch;
  span.top = std::min(span.top, row), span.bottom = std::max(span.bottom, row);
  span.left = std::min(span.left, column), span.right = std::max(span.right, column);
}

namespace {

// The only window along an axis that covers exactly first to last; -1: none, or several do.
std::int64_t only_window(std::int64_t first, std::int64_t last, std::int64_t size, std::int64_t results,
                         std::int64_t kernel, std::int64_t stride, std::int64_t pad) {
  std::int64_t found = -1;
  const std::int64_t from = std::max<std::int64_t>((last - kernel + 1 + pad) / stride - 1, 0);
  for (std::int64_t i = from; i < results && i * stride - pad <= first; ++i) {
    const std::int64_t begin = std::max<std::int64_t>(i * stride - pad, 0);
    const std::int64_t end = std::min(i * stride - pad + kernel, size) - 1;
    if (begin != first || end != last) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

}  // namespace

std::int64_t Rule::result_of(const WindowSpan& span) const {
  if (span.is_contradictory) return kContradiction;
  if (span.channel < 0) return kOutside;
  if (!reduced.empty()) return span.channel < elements ? span.channel : kOutside;
  const Geometry& g = geometry;
  const std::int64_t y =
      only_window(span.top, span.bottom, g.in_height, g.out_height, g.kernel_height, g.stride_h, g.pad_top);
  const std::int64_t x =
      only_window(span.left, span.right, g.in_width, g.out_width, g.kernel_width, g.stride_w, g.pad_left);
  if (y < 0 || x < 0) return kOutside;
  const std::int64_t result = ((span.batch * g.out_height + y) * g.out_width + x) * g.out_depth + span.channel;
  return result < elements ? result : kOutside;
}

}  // namespace reef::runtime

// SPDX-License-Identifier: Apache-2.0
// Integer convolution as a matrix product: windows, gathered into rows, times weights.
//
// Positions outside the image contribute nothing, which a gathered 0 says exactly, because zero points are subtracted
// while gathering. A few windows at a time are gathered, so memory stays small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/int_rows.h"

namespace reef::kernels {

// Windows gathered together: weights are read once per tile. Fewer where windows are huge, to bound memory.
inline std::int64_t pixel_tile(std::int64_t row_stride) {
  return std::clamp<std::int64_t>((std::int64_t{1} << 19) / std::max<std::int64_t>(row_stride, 1), 1, 8);
}
// Channels summed up together, which bounds the sums' memory.
inline constexpr std::int64_t kChannelTile = 512;

// Zero points of an input: one, or one per batch.
inline std::int32_t zero_point_of_batch(std::span<const std::int32_t> zero_points, std::int64_t batch) {
  return zero_points[zero_points.size() == 1 ? 0 : static_cast<std::size_t>(batch)];
}

// One window of one group as a row of depth() numbers, order [y][x][channel].
template <typename In>
void gather_window(const ConvShape& s, const In* input, std::span<const std::int32_t> zero_points, std::int64_t pixel,
                   std::int64_t group, std::int16_t* row) {
  const std::int64_t out_x = pixel % s.x.output;
  const std::int64_t out_y = pixel / s.x.output % s.y.output;
  const std::int64_t batch = pixel / s.x.output / s.y.output;
  const std::int32_t zero_point = zero_point_of_batch(zero_points, batch);
  const TapRange ys = s.y.inside(out_y), xs = s.x.inside(out_x);
  const std::int64_t channels = s.group_inputs(), line = s.x.window * channels;
  const bool contiguous = s.x.dilation == 1 && s.groups == 1;
  std::fill(row, row + ys.begin * line, std::int16_t{0});
  for (std::int64_t ky = ys.begin; ky < ys.end; ++ky) {
    const std::int64_t in_y = s.y.origin(out_y) + ky * s.y.dilation;
    const In* from = input + (batch * s.y.input + in_y) * s.x.input * s.input_channels + group * channels;
    std::int16_t* to = row + ky * line;
    const auto column = [&](std::int64_t kx) { return (s.x.origin(out_x) + kx * s.x.dilation) * s.input_channels; };
    std::fill(to, to + xs.begin * channels, std::int16_t{0});
    if (contiguous) {
      widen(from + column(xs.begin), (xs.end - xs.begin) * channels, zero_point, to + xs.begin * channels);
    } else {
      for (std::int64_t kx = xs.begin; kx < xs.end; ++kx) {
        widen(from + column(kx), channels, zero_point, to + kx * channels);
      }
    }
    std::fill(to + xs.end * channels, to + line, std::int16_t{0});
  }
  std::fill(row + ys.end * line, row + s.y.window * line, std::int16_t{0});
}

// Output pixels [begin, end) and channels [channel_begin, channel_end), which must lie in one group unless they are
// all. sink(pixel, first_channel, sums, count) receives exact sums.
template <typename In, typename Sink>
void convolve(const ConvShape& s, const In* input, std::span<const std::int32_t> zero_points, const PackedRows& weights,
              std::int64_t run, std::int64_t begin, std::int64_t end, std::int64_t channel_begin,
              std::int64_t channel_end, const Sink& sink) {
  const std::int64_t tile = pixel_tile(weights.stride);
  std::vector<std::int16_t> rows(static_cast<std::size_t>(tile * weights.stride));  // the padding stays 0
  std::vector<std::int64_t> sums(static_cast<std::size_t>(tile * std::min(kChannelTile, s.group_outputs())));
  const std::int64_t first_group = channel_begin / s.group_outputs();
  const std::int64_t last_group = (channel_end - 1) / s.group_outputs();
  for (std::int64_t pixel = begin; pixel < end; pixel += tile) {
    const std::int64_t count = std::min(tile, end - pixel);
    for (std::int64_t group = first_group; group <= last_group; ++group) {
      for (std::int64_t i = 0; i < count; ++i) {
        gather_window(s, input, zero_points, pixel + i, group, rows.data() + i * weights.stride);
      }
      const std::int64_t from = std::max(channel_begin, group * s.group_outputs());
      const std::int64_t to = std::min(channel_end, (group + 1) * s.group_outputs());
      for (std::int64_t channel = from; channel < to; channel += kChannelTile) {
        const std::int64_t width = std::min(kChannelTile, to - channel);
        std::fill(sums.begin(), sums.begin() + count * width, std::int64_t{0});
        add_row_products(rows.data(), weights.stride, count, weights.row(channel), weights.stride, width,
                         weights.stride, run, sums.data(), width);
        for (std::int64_t i = 0; i < count; ++i) sink(pixel + i, channel, sums.data() + i * width, width);
      }
    }
  }
}

}  // namespace reef::kernels

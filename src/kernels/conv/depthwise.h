// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: each input channel has its own window(s); output channel c reads input channel
// c / depth_multiplier. Vectors run across channels, so that float sums keep the reference's order (window rows, then
// columns).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/conv/conv_int.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/float_columns.h"

namespace reef::kernels {

// sums[c] += (x[c] - zero_point) * w[c]
template <typename In>
void add_channel_products(const In* x, std::int32_t zero_point, const std::int16_t* w, std::int64_t count,
                          std::int32_t* sums) {
  for (std::int64_t c = 0; c < count; ++c) {
    const auto value = static_cast<std::int16_t>(x[c] - zero_point);
    sums[c] += std::int32_t{value} * std::int32_t{w[c]};
  }
}
inline void add_channel_products(const float* x, const float* w, std::int64_t count, float* sums) {
  for (std::int64_t c = 0; c < count; ++c) sums[c] += x[c] * w[c];
}

// Repeats each channel `times` times. Numbers that networks have are constants of their loops.
template <std::int64_t kTimes, typename T>
void repeat_channels_by(const T* x, std::int64_t channels, T* repeated) {
  for (std::int64_t c = 0; c < channels; ++c, repeated += kTimes) std::fill_n(repeated, kTimes, x[c]);
}
template <typename T>
void repeat_channels(const T* x, std::int64_t channels, std::int64_t times, T* repeated) {
  if (times == 2) return repeat_channels_by<2>(x, channels, repeated);
  if (times == 4) return repeat_channels_by<4>(x, channels, repeated);
  if (times == 8) return repeat_channels_by<8>(x, channels, repeated);
  for (std::int64_t c = 0; c < channels; ++c, repeated += times) std::fill_n(repeated, times, x[c]);
}

// visit(input pixel data, window position) for the positions inside the image, in order.
template <typename In, typename Visit>
void for_each_tap(const ConvShape& s, const In* image, std::int64_t out_y, std::int64_t out_x, const Visit& visit) {
  const TapRange ys = s.y.inside(out_y), xs = s.x.inside(out_x);
  for (std::int64_t ky = ys.begin; ky < ys.end; ++ky) {
    const In* line = image + (s.y.origin(out_y) + ky * s.y.dilation) * s.x.input * s.input_channels;
    for (std::int64_t kx = xs.begin; kx < xs.end; ++kx) {
      visit(line + (s.x.origin(out_x) + kx * s.x.dilation) * s.input_channels, ky * s.x.window + kx);
    }
  }
}

// One part of the output, whose channels begin and end at multiples of the depth multiplier. weights:
// [position][output channel], zero points subtracted. sink(pixel, first_channel, sums, count) receives exact sums.
// `run`: products that fit a 32-bit sum.
template <typename In, typename Sink>
void depthwise_convolve(const ConvShape& s, const In* input, std::span<const std::int32_t> zero_points,
                        const std::int16_t* weights, std::int64_t run, const OutputBlock& block, const Sink& sink) {
  const std::int64_t multiplier = s.output_channels / s.input_channels;
  const std::int64_t channels = block.channel_end - block.channel_begin, first_input = block.channel_begin / multiplier;
  std::vector<std::int32_t> part(static_cast<std::size_t>(channels));
  std::vector<std::int64_t> sums(static_cast<std::size_t>(channels));
  std::vector<In> repeated(static_cast<std::size_t>(multiplier > 1 ? channels : 0));
  const auto flush = [&] {
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += part[c];
    std::fill(part.begin(), part.end(), 0);
  };
  const std::int64_t batch = block.row / s.y.output;
  const std::int32_t zero_point = zero_point_of_batch(zero_points, batch);
  const In* image = input + batch * s.input_batch_size();
  for (std::int64_t out_x = block.x_begin; out_x < block.x_end; ++out_x) {
    std::fill(sums.begin(), sums.end(), std::int64_t{0});
    std::int64_t in_part = 0;
    for_each_tap(s, image, block.row % s.y.output, out_x, [&](const In* x, std::int64_t tap) {
      x += first_input;
      if (multiplier > 1) {
        repeat_channels(x, channels / multiplier, multiplier, repeated.data());
        x = repeated.data();
      }
      add_channel_products(x, zero_point, weights + tap * s.output_channels + block.channel_begin, channels,
                           part.data());
      if (++in_part == run) {
        flush();
        in_part = 0;
      }
    });
    flush();
    sink(block.row * s.x.output + out_x, block.channel_begin, sums.data(), channels);
  }
}

// The same on floats. weights: [position][output channel].
void depthwise_convolve_float(const ConvShape& s, const float* input, const float* weights, const FloatOutput& finish,
                              const OutputBlock& block, float* output);

}  // namespace reef::kernels

// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/conv_float.h"

#include <algorithm>

#include "kernels/conv/transpose_taps.h"

namespace reef::kernels {
namespace {

constexpr int kPixelsTogether = 4;

// Adds all window positions inside the image for `Pixels` neighbouring output pixels that share `xs`.
template <int Pixels>
void add_window(const ConvShape& s, const float* group_input, TapRange ys, TapRange xs, std::int64_t origin_y,
                std::int64_t origin_x, const float* block, FloatSums<Pixels>& sums) {
  const std::int64_t channels = s.group_inputs();
  const std::int64_t pixel_stride = s.x.stride * s.input_channels;
  const bool contiguous = s.x.dilation == 1 && s.groups == 1;
  for (std::int64_t ky = ys.begin; ky < ys.end; ++ky) {
    const float* line = group_input + (origin_y + ky * s.y.dilation) * s.x.input * s.input_channels;
    const auto at = [&](std::int64_t kx) { return line + (origin_x + kx * s.x.dilation) * s.input_channels; };
    const auto weights = [&](std::int64_t kx) { return block + (ky * s.x.window + kx) * channels * kColumnBlock; };
    if (contiguous) {
      if (xs.begin < xs.end) {
        sums.add(at(xs.begin), pixel_stride, weights(xs.begin), (xs.end - xs.begin) * channels);
      }
      continue;
    }
    for (std::int64_t kx = xs.begin; kx < xs.end; ++kx) sums.add(at(kx), pixel_stride, weights(kx), channels);
  }
}

template <int Pixels>
void store(const FloatSums<Pixels>& sums, const FloatOutput& finish, std::int64_t first_channel, std::int64_t width,
           float* pixel, std::int64_t channels) {
  for (int p = 0; p < Pixels; ++p) {
    float row[kColumnBlock];
    sums.copy_row(p, row);
    for (std::int64_t j = 0; j < width; ++j) {
      pixel[p * channels + first_channel + j] = finish(row[j], first_channel + j);
    }
  }
}

// Pixels [x_begin, x_end) of output row `row`, `width` channels from `channel`, all of one group and block of weights.
struct FloatSegment {
  std::int64_t row, x_begin, x_end, channel, width;
  const float* group_input;
  const float* weights;
};

void convolve_segment(const ConvShape& s, const FloatSegment& segment, const FloatOutput& finish, float* output) {
  const auto whole = [&](std::int64_t x) {
    const TapRange xs = s.x.inside(x);
    return xs.begin == 0 && xs.end == s.x.window;
  };
  const std::int64_t out_y = segment.row % s.y.output, origin_y = s.y.origin(out_y);
  const TapRange ys = s.y.inside(out_y);
  for (std::int64_t x = segment.x_begin; x < segment.x_end;) {
    float* pixel = output + (segment.row * s.x.output + x) * s.output_channels;
    const std::int64_t origin_x = s.x.origin(x);
    if (x + kPixelsTogether <= segment.x_end && whole(x) && whole(x + kPixelsTogether - 1)) {
      FloatSums<kPixelsTogether> sums;
      add_window(s, segment.group_input, ys, s.x.inside(x), origin_y, origin_x, segment.weights, sums);
      store(sums, finish, segment.channel, segment.width, pixel, s.output_channels);
      x += kPixelsTogether;
    } else {
      FloatSums<1> sums;
      add_window(s, segment.group_input, ys, s.x.inside(x), origin_y, origin_x, segment.weights, sums);
      store(sums, finish, segment.channel, segment.width, pixel, s.output_channels);
      ++x;
    }
  }
}

}  // namespace

void convolve_float(const ConvShape& s, const float* input, const PackedColumns& weights, const FloatOutput& finish,
                    const OutputBlock& part, float* output) {
  const float* image = input + part.row / s.y.output * s.input_batch_size();
  for (std::int64_t channel = part.channel_begin; channel < part.channel_end;) {
    const std::int64_t group = channel / s.group_outputs(), in_group = channel % s.group_outputs();
    const std::int64_t width = std::min(kColumnBlock, s.group_outputs() - in_group);
    convolve_segment(s,
                     {part.row, part.x_begin, part.x_end, channel, width, image + group * s.group_inputs(),
                      weights.block(group, in_group / kColumnBlock)},
                     finish, output);
    channel += width;
  }
}

void transpose_convolve_float(const ConvShape& s, const float* input, const PackedColumns& weights,
                              const FloatOutput& finish, const OutputBlock& part, float* output) {
  const std::int64_t out_y = part.row % s.y.output;
  const float* image = input + part.row / s.y.output * s.input_batch_size();
  for (std::int64_t channel = part.channel_begin; channel < part.channel_end; channel += kColumnBlock) {
    for (std::int64_t out_x = part.x_begin; out_x < part.x_end; ++out_x) {
      FloatSums<1> sums;
      for_each_source(s, out_y, out_x, [&](std::int64_t pixel, std::int64_t tap) {
        sums.add(image + pixel * s.input_channels, 0, weights.block(tap, channel / kColumnBlock), s.input_channels);
      });
      float* to = output + (part.row * s.x.output + out_x) * s.output_channels;
      store(sums, finish, channel, std::min(kColumnBlock, part.channel_end - channel), to, s.output_channels);
    }
  }
}

}  // namespace reef::kernels

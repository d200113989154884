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

}  // namespace

void convolve_float(const ConvShape& s, const float* input, const PackedColumns& weights, const FloatOutput& finish,
                    std::int64_t row_begin, std::int64_t row_end, float* output) {
  const auto whole = [&](std::int64_t x) {
    const TapRange xs = s.x.inside(x);
    return xs.begin == 0 && xs.end == s.x.window;
  };
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t out_y = row % s.y.output;
    const TapRange ys = s.y.inside(out_y);
    const float* image = input + row / s.y.output * s.input_batch_size();
    float* out_row = output + row * s.x.output * s.output_channels;
    for (std::int64_t group = 0; group < s.groups; ++group) {
      const float* group_input = image + group * s.group_inputs();
      for (std::int64_t b = 0; b < weights.blocks; ++b) {
        const std::int64_t channel = group * s.group_outputs() + b * kColumnBlock;
        const std::int64_t width = std::min(kColumnBlock, s.group_outputs() - b * kColumnBlock);
        const float* block = weights.block(group, b);
        for (std::int64_t x = 0; x < s.x.output;) {
          float* pixel = out_row + x * s.output_channels;
          const std::int64_t origin_y = s.y.origin(out_y), origin_x = s.x.origin(x);
          if (x + kPixelsTogether <= s.x.output && whole(x) && whole(x + kPixelsTogether - 1)) {
            FloatSums<kPixelsTogether> sums;
            add_window(s, group_input, ys, s.x.inside(x), origin_y, origin_x, block, sums);
            store(sums, finish, channel, width, pixel, s.output_channels);
            x += kPixelsTogether;
          } else {
            FloatSums<1> sums;
            add_window(s, group_input, ys, s.x.inside(x), origin_y, origin_x, block, sums);
            store(sums, finish, channel, width, pixel, s.output_channels);
            ++x;
          }
        }
      }
    }
  }
}

void transpose_convolve_float(const ConvShape& s, const float* input, const PackedColumns& weights,
                              const FloatOutput& finish, std::int64_t row_begin, std::int64_t row_end, float* output) {
  for (std::int64_t row = row_begin; row < row_end; ++row) {
    const std::int64_t out_y = row % s.y.output;
    const float* image = input + row / s.y.output * s.input_batch_size();
    for (std::int64_t b = 0; b < weights.blocks; ++b) {
      for (std::int64_t out_x = 0; out_x < s.x.output; ++out_x) {
        FloatSums<1> sums;
        for_each_source(s, out_y, out_x, [&](std::int64_t pixel, std::int64_t tap) {
          sums.add(image + pixel * s.input_channels, 0, weights.block(tap, b), s.input_channels);
        });
        float* to = output + (row * s.x.output + out_x) * s.output_channels;
        store(sums, finish, b * kColumnBlock, std::min(kColumnBlock, s.output_channels - b * kColumnBlock), to,
              s.output_channels);
      }
    }
  }
}

}  // namespace reef::kernels

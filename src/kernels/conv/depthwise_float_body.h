// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on floats for one target: REEF_LANES floats a vector. Same order of additions, and so the same
// bits, as depthwise_convolve_float. No include guard: it is included once per target, see simd/targets.h.

using Vec [[gnu::vector_size(REEF_LANES * 4), gnu::aligned(4), gnu::may_alias]] = float;

// kPixels outputs, `step` input elements apart, times kVectors vectors of channels. `x` and `w` point to the first
// position of the window that lies inside the image.
template <int kPixels, int kVectors>
void depthwise_tile(const ConvShape& s, const float* x, std::int64_t step, const float* w, std::int64_t rows,
                    std::int64_t columns, const float* bias, const FloatOutput& finish, float* output) {
  Vec sums[kPixels][kVectors] = {};
  const std::int64_t line = s.y.dilation * s.x.input * s.input_channels, column = s.x.dilation * s.input_channels;
  for (std::int64_t ky = 0; ky < rows; ++ky, x += line, w += s.x.window * s.output_channels) {
    for (std::int64_t kx = 0; kx < columns; ++kx) {
      Vec weight[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        weight[v] = *reinterpret_cast<const Vec*>(w + kx * s.output_channels + v * REEF_LANES);
      }
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          sums[p][v] += *reinterpret_cast<const Vec*>(x + kx * column + p * step + v * REEF_LANES) * weight[v];
        }
      }
    }
  }
  const Vec lowest = finish.lowest - Vec{}, highest = finish.highest - Vec{};
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const Vec total = sums[p][v] + (bias != nullptr ? *reinterpret_cast<const Vec*>(bias + v * REEF_LANES) : Vec{});
      const Vec raised = total < lowest ? lowest : total;  // NaN passes both
      *reinterpret_cast<Vec*>(output + p * s.output_channels + v * REEF_LANES) = highest < raised ? highest : raised;
    }
  }
}

template <int kVectors>
void depthwise_row(const ConvShape& s, const float* image, const float* weights, const FloatOutput& finish,
                   std::int64_t row, std::int64_t x_begin, std::int64_t x_end, std::int64_t channel, float* output) {
  constexpr std::int64_t kPixels = 4;
  const std::int64_t out_y = row % s.y.output, step = s.x.stride * s.input_channels;
  const TapRange ys = s.y.inside(out_y);
  const float* bias = finish.bias == nullptr ? nullptr : finish.bias + channel;
  for (std::int64_t x = x_begin; x < x_end;) {
    const TapRange xs = s.x.inside(x), last = s.x.inside(std::min(x + kPixels, x_end) - 1);
    const bool together = x + kPixels <= x_end && xs.begin == 0 && xs.end == s.x.window && last.end == s.x.window;
    const std::int64_t in_y = s.y.origin(out_y) + ys.begin * s.y.dilation,
                       in_x = s.x.origin(x) + xs.begin * s.x.dilation;
    const float* from = image + (in_y * s.x.input + in_x) * s.input_channels + channel;
    const float* w = weights + (ys.begin * s.x.window + xs.begin) * s.output_channels + channel;
    float* to = output + (row * s.x.output + x) * s.output_channels + channel;
    if (together) {
      depthwise_tile<kPixels, kVectors>(s, from, step, w, ys.end - ys.begin, s.x.window, bias, finish, to);
      x += kPixels;
    } else {
      depthwise_tile<1, kVectors>(s, from, step, w, ys.end - ys.begin, xs.end - xs.begin, bias, finish, to);
      ++x;
    }
  }
}

// One block of at least REEF_LANES channels; each input channel has one output channel.
void depthwise_block(const ConvShape& s, const float* image, const float* weights, const FloatOutput& finish,
                     const OutputBlock& block, float* output) {
  std::int64_t channel = block.channel_begin;
  for (; channel + 2 * REEF_LANES <= block.channel_end; channel += 2 * REEF_LANES) {
    depthwise_row<2>(s, image, weights, finish, block.row, block.x_begin, block.x_end, channel, output);
  }
  for (; channel < block.channel_end; channel += REEF_LANES) {
    // The last vector may compute some channels again.
    const std::int64_t first = std::min(channel, block.channel_end - REEF_LANES);
    depthwise_row<1>(s, image, weights, finish, block.row, block.x_begin, block.x_end, first, output);
  }
}

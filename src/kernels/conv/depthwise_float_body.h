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

// Which lines and columns of a window of 3x3 lie inside the image, [first, last).
template <int kFirst, int kLast>
struct Inside {
  static constexpr int first = kFirst, last = kLast;
};

// The same for windows of 3x3: kPixels outputs, kStride pixels apart, of one vector of channels. The weights stay in
// registers, and an input that several windows share is loaded once. `x` is the window's first position, inside or not.
template <int kPixels, int kStride, typename Ys, typename Xs>
[[gnu::always_inline]] inline void depthwise_tile_3x3(const ConvShape& s, const float* x, const Vec (&w)[9],
                                                      const float* bias, const FloatOutput& finish, float* output) {
  constexpr int kInputs = (kPixels - 1) * kStride + 3;
  Vec sums[kPixels] = {};
  const std::int64_t line = s.x.input * s.input_channels;
#pragma GCC unroll 3
  for (int ky = Ys::first; ky < Ys::last; ++ky) {
    Vec in[kInputs];
#pragma GCC unroll 18
    for (int i = Xs::first; i < kInputs - 3 + Xs::last; ++i) {
      in[i] = *reinterpret_cast<const Vec*>(x + ky * line + i * s.input_channels);
    }
#pragma GCC unroll 3
    for (int kx = Xs::first; kx < Xs::last; ++kx) {
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) sums[p] += in[p * kStride + kx] * w[3 * ky + kx];
    }
  }
  const Vec lowest = finish.lowest - Vec{}, highest = finish.highest - Vec{};
  const Vec added = bias != nullptr ? *reinterpret_cast<const Vec*>(bias) : Vec{};
#pragma GCC unroll 8
  for (int p = 0; p < kPixels; ++p) {
    const Vec total = sums[p] + added;
    const Vec raised = total < lowest ? lowest : total;  // NaN passes both
    *reinterpret_cast<Vec*>(output + p * s.output_channels) = highest < raised ? highest : raised;
  }
}

// Outputs [x, x_end) of a row, one vector of channels.
template <int kStride, typename Ys>
void depthwise_row_3x3(const ConvShape& s, const float* image, const float* weights, const FloatOutput& finish,
                       std::int64_t row, std::int64_t x, std::int64_t x_end, std::int64_t channel, float* output) {
  using All = Inside<0, 3>;
  const std::int64_t inside = (s.x.input - 3 + s.x.pad_before) / kStride + 1;  // windows from here on reach beyond
  const std::int64_t end = std::min(x_end, inside);
  const float* bias = finish.bias == nullptr ? nullptr : finish.bias + channel;
  Vec w[9];
#pragma GCC unroll 9
  for (int i = 0; i < 9; ++i) w[i] = *reinterpret_cast<const Vec*>(weights + i * s.output_channels + channel);
  const float* from = image + (s.y.origin(row % s.y.output) * s.x.input + s.x.origin(x)) * s.input_channels + channel;
  float* to = output + (row * s.x.output + x) * s.output_channels + channel;
  const auto advance = [&](std::int64_t pixels) {
    x += pixels;
    from += pixels * kStride * s.input_channels;
    to += pixels * s.output_channels;
  };
  if (x == 0 && s.x.pad_before == 1) {
    depthwise_tile_3x3<1, kStride, Ys, Inside<1, 3>>(s, from, w, bias, finish, to);
    advance(1);
  }
  for (; x + REEF_PIXELS_3X3 <= end; advance(REEF_PIXELS_3X3)) {
    depthwise_tile_3x3<REEF_PIXELS_3X3, kStride, Ys, All>(s, from, w, bias, finish, to);
  }
  for (; REEF_PIXELS_3X3 > 4 && x + 4 <= end; advance(4)) {
    depthwise_tile_3x3<4, kStride, Ys, All>(s, from, w, bias, finish, to);
  }
  for (; x + 2 <= end; advance(2)) depthwise_tile_3x3<2, kStride, Ys, All>(s, from, w, bias, finish, to);
  for (; x < end; advance(1)) depthwise_tile_3x3<1, kStride, Ys, All>(s, from, w, bias, finish, to);
  if (x < x_end) depthwise_tile_3x3<1, kStride, Ys, Inside<0, 2>>(s, from, w, bias, finish, to);
}

using Row3x3 = void(const ConvShape&, const float*, const float*, const FloatOutput&, std::int64_t, std::int64_t,
                    std::int64_t, std::int64_t, float*);

template <int kStride>
Row3x3* row_3x3_of(const TapRange& ys) {
  if (ys.begin == 0 && ys.end == 3) return &depthwise_row_3x3<kStride, Inside<0, 3>>;
  if (ys.begin == 1 && ys.end == 3) return &depthwise_row_3x3<kStride, Inside<1, 3>>;
  if (ys.begin == 0 && ys.end == 2) return &depthwise_row_3x3<kStride, Inside<0, 2>>;
  return nullptr;
}

// For windows of 3x3 that reach beyond the image by one position at most; null: something else.
inline Row3x3* row_3x3(const ConvShape& s, std::int64_t row) {
  const auto is_usual = [](const ConvAxis& axis) {
    const std::int64_t beyond = axis.origin(axis.output - 1) + 3 - axis.input;
    return axis.window == 3 && axis.dilation == 1 && axis.input >= 3 && axis.pad_before <= 1 && beyond <= 1;
  };
  if (!is_usual(s.x) || !is_usual(s.y) || s.x.stride > 2) return nullptr;
  const TapRange ys = s.y.inside(row % s.y.output);
  return s.x.stride == 1 ? row_3x3_of<1>(ys) : row_3x3_of<2>(ys);
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
  Row3x3* const small_window = row_3x3(s, block.row);
  for (; small_window == nullptr && channel + 2 * REEF_LANES <= block.channel_end; channel += 2 * REEF_LANES) {
    depthwise_row<2>(s, image, weights, finish, block.row, block.x_begin, block.x_end, channel, output);
  }
  for (; channel < block.channel_end; channel += REEF_LANES) {
    // The last vector may compute some channels again.
    const std::int64_t first = std::min(channel, block.channel_end - REEF_LANES);
    Row3x3* const do_row = small_window != nullptr ? small_window : &depthwise_row<1>;
    do_row(s, image, weights, finish, block.row, block.x_begin, block.x_end, first, output);
  }
}

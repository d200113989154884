// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution on floats for one target: REEF_LANES floats a vector. Same order of additions, and so the same
// bits, as depthwise_convolve_float, unless REEF_FUSED. No include guard: it is included once per target, see
// simd/targets.h.

#include "kernels/simd/float_vectors_body.h"

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
          add_product(sums[p][v], *reinterpret_cast<const Vec*>(x + kx * column + p * step + v * REEF_LANES),
                      weight[v]);
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

// The same for windows of 3x3: kPixels outputs, kStride pixels apart, of one vector of channels. An input that several
// windows share is loaded once. `x` is the window's first position, inside or not.
template <int kPixels, int kStride, typename Ys, typename Xs>
[[gnu::always_inline]] inline void depthwise_tile_3x3(const ConvShape& s, const float* x, const float* w,
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
      const Vec weight = *reinterpret_cast<const Vec*>(w + (3 * ky + kx) * s.output_channels);
#pragma GCC unroll 8
      for (int p = 0; p < kPixels; ++p) add_product(sums[p], in[p * kStride + kx], weight);
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

// Outputs [x, x_end) of a row, kVectors vectors of channels. (All vectors of some pixels before the next pixels: a line
// of the cache is used whole while it is there.)
template <int kVectors, int kStride, typename Ys>
void depthwise_row_3x3(const ConvShape& s, const float* image, const float* weights, const FloatOutput& finish,
                       std::int64_t row, std::int64_t x, std::int64_t x_end, std::int64_t channel, float* output) {
  const std::int64_t inside = (s.x.input - 3 + s.x.pad_before) / kStride + 1;  // windows from here on reach beyond
  const std::int64_t end = std::min(x_end, inside);
  const float* bias = finish.bias == nullptr ? nullptr : finish.bias + channel;
  const float* w = weights + channel;
  const float* from = image + (s.y.origin(row % s.y.output) * s.x.input + s.x.origin(x)) * s.input_channels + channel;
  float* to = output + (row * s.x.output + x) * s.output_channels + channel;
  const auto tile = [&]<int kPixels, typename Xs>(std::integral_constant<int, kPixels>, Xs) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors * REEF_LANES; v += REEF_LANES) {
      depthwise_tile_3x3<kPixels, kStride, Ys, Xs>(s, from + v, w + v, bias == nullptr ? nullptr : bias + v, finish,
                                                   to + v);
    }
    x += kPixels;
    from += kPixels * kStride * s.input_channels;
    to += kPixels * s.output_channels;
  };
  constexpr std::integral_constant<int, REEF_PIXELS_3X3> kMost;
  constexpr std::integral_constant<int, 4> kFour;
  constexpr std::integral_constant<int, 2> kTwo;
  constexpr std::integral_constant<int, 1> kOne;
  constexpr Inside<0, 3> kAll;
  if (x == 0 && s.x.pad_before == 1) tile(kOne, Inside<1, 3>());
  while (x + REEF_PIXELS_3X3 <= end) tile(kMost, kAll);
  while (REEF_PIXELS_3X3 > 4 && x + 4 <= end) tile(kFour, kAll);
  while (x + 2 <= end) tile(kTwo, kAll);
  while (x < end) tile(kOne, kAll);
  if (x < x_end) tile(kOne, Inside<0, 2>());
}

using RowFunction = void(const ConvShape&, const float*, const float*, const FloatOutput&, std::int64_t, std::int64_t,
                         std::int64_t, std::int64_t, float*);

template <int kVectors, int kStride>
RowFunction* row_3x3_of(const TapRange& ys) {
  if (ys.begin == 0 && ys.end == 3) return &depthwise_row_3x3<kVectors, kStride, Inside<0, 3>>;
  if (ys.begin == 1 && ys.end == 3) return &depthwise_row_3x3<kVectors, kStride, Inside<1, 3>>;
  if (ys.begin == 0 && ys.end == 2) return &depthwise_row_3x3<kVectors, kStride, Inside<0, 2>>;
  return nullptr;
}

// For windows of 3x3 that reach beyond the image by one position at most; null: something else.
template <int kVectors>
RowFunction* row_3x3(const ConvShape& s, std::int64_t row) {
  const auto is_usual = [](const ConvAxis& axis) {
    const std::int64_t beyond = axis.origin(axis.output - 1) + 3 - axis.input;
    return axis.window == 3 && axis.dilation == 1 && axis.input >= 3 && axis.pad_before <= 1 && beyond <= 1;
  };
  if (!is_usual(s.x) || !is_usual(s.y) || s.x.stride > 2) return nullptr;
  const TapRange ys = s.y.inside(row % s.y.output);
  return s.x.stride == 1 ? row_3x3_of<kVectors, 1>(ys) : row_3x3_of<kVectors, 2>(ys);
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

// Rows [row_begin, row_end) of at least REEF_LANES channels; each input channel has one output channel. All rows of
// some channels before the next channels: the lines that rows share stay in the first cache, which does not hold those
// of all channels.
void depthwise_rows(const ConvShape& s, const float* input, const float* weights, const FloatOutput& finish,
                    std::int64_t row_begin, std::int64_t row_end, std::int64_t channel_begin, std::int64_t channel_end,
                    float* output) {
  constexpr int kWide = 2;  // vectors
  const auto do_rows = [&](std::int64_t channel, auto* small_window, RowFunction* any_window) {
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const float* image = input + row / s.y.output * s.input_batch_size();
      RowFunction* const special = small_window(s, row);
      (special != nullptr ? special : any_window)(s, image, weights, finish, row, 0, s.x.output, channel, output);
    }
  };
  std::int64_t channel = channel_begin;
  for (; channel + kWide * REEF_LANES <= channel_end; channel += kWide * REEF_LANES) {
    do_rows(channel, &row_3x3<kWide>, &depthwise_row<kWide>);
  }
  for (; channel < channel_end; channel += REEF_LANES) {
    // The last vector may compute some channels again.
    do_rows(std::min(channel, channel_end - REEF_LANES), &row_3x3<1>, &depthwise_row<1>);
  }
}

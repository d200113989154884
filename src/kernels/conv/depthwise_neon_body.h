// SPDX-License-Identifier: Apache-2.0
// conv/depthwise_bytes.h for 64-bit ARM: 16 channels of four neighbouring outputs at a time. Bytes are widened to 16
// bits, multiplied by weights of 16 bits and added to 32-bit sums, four in an instruction. Columns that neighbouring
// windows share are widened once. (Dot products do not pay here: they would add up rows of a window, and bringing those
// bytes beside each other takes as long as what is saved.) No include guard: it is included between brackets, see
// simd/targets.h.

#include "kernels/matmul/byte_scaling_neon_body.h"

constexpr int kPixels = 4;
constexpr int kTapBytes = 2 * kDepthwiseHalf;  // of weights

struct RowWork {
  // Input bytes of the first channel of the image: [row of the window][column], columns from the first that any window
  // touches.
  const std::uint8_t* const* columns;
  std::int64_t line;                            // columns from a row of the window to the next
  std::int64_t stride, dilation, window, rows;  // of the window: columns, rows
  const std::int8_t* weights;                   // [row][column][channel], 16-bit numbers
  RowOutput output;                             // of the row's first pixel and these channels
};

struct Words16 {
  int16x8_t low, high;
};
[[gnu::always_inline]] inline Words16 load_weights(const std::int8_t* from) {
  return {vreinterpretq_s16_s8(vld1q_s8(from)), vreinterpretq_s16_s8(vld1q_s8(from + 16))};
}
// kWhole: there are 16 channels.
template <bool kWhole, bool kSigned>
[[gnu::always_inline]] inline Words16 load_pixel(const RowWork& work, const std::uint8_t* pixel) {
  uint8x16_t bytes;
  if constexpr (kWhole) {
    bytes = vld1q_u8(pixel + work.output.channel);
  } else {
    std::uint8_t all[kDepthwiseHalf] = {};
    std::memcpy(all, pixel + work.output.channel, static_cast<std::size_t>(work.output.columns));
    bytes = vld1q_u8(all);
  }
  if constexpr (kSigned) {
    const int8x16_t numbers = vreinterpretq_s8_u8(bytes);
    return {vmovl_s8(vget_low_s8(numbers)), vmovl_high_s8(numbers)};
  }
  return {vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))), vreinterpretq_s16_u16(vmovl_high_u8(bytes))};
}

[[gnu::always_inline]] inline void add_products(const Words16& x, const Words16& w, int32x4_t (&sums)[4]) {
  sums[0] = vmlal_s16(sums[0], vget_low_s16(x.low), vget_low_s16(w.low));
  sums[1] = vmlal_high_s16(sums[1], x.low, w.low);
  sums[2] = vmlal_s16(sums[2], vget_low_s16(x.high), vget_low_s16(w.high));
  sums[3] = vmlal_high_s16(sums[3], x.high, w.high);
}

// One row of the windows of kCount outputs. kStride, kWindow: known ones, without dilation, or 0.
template <int kCount, int kStride, int kWindow, bool kWhole, bool kSigned>
[[gnu::always_inline]] inline void add_row(const RowWork& work, const std::uint8_t* const* column,
                                           const std::int8_t* weights, int32x4_t (&sums)[kCount][4]) {
  if constexpr (kWindow != 0) {
    Words16 w[kWindow];
    for_constants<kWindow>([&](auto kx)
                               __attribute__((always_inline)) { w[kx] = load_weights(weights + kx * kTapBytes); });
    for_constants<(kCount - 1) * kStride + kWindow>([&](auto j) __attribute__((always_inline)) {
      const Words16 x = load_pixel<kWhole, kSigned>(work, column[j]);
      for_constants<kCount>([&](auto p) __attribute__((always_inline)) {
        constexpr int kColumn = decltype(j)::value - decltype(p)::value * kStride;
        if constexpr (kColumn >= 0 && kColumn < kWindow) add_products(x, w[kColumn], sums[p]);
      });
    });
  } else {
    for (std::int64_t kx = 0; kx < work.window; ++kx, weights += kTapBytes, column += work.dilation) {
      const Words16 w = load_weights(weights);
      for_constants<kCount>([&](auto p) __attribute__((always_inline)) {
        add_products(load_pixel<kWhole, kSigned>(work, column[p * work.stride]), w, sums[p]);
      });
    }
  }
}

template <int kCount, int kStride, int kWindow, bool kWhole, bool kSigned>
void depthwise_pixels(const RowWork& work, std::int64_t x) {
  int32x4_t sums[kCount][4];
  const std::int32_t* start = work.output.scaling->start.data() + work.output.slot;
  for_constants<4 * kCount>([&](auto i) __attribute__((always_inline)) {
    sums[i / 4][i % 4] = vld1q_s32(start + i % 4 * kQuad);
  });
  const std::uint8_t* const* column = work.columns + x * work.stride;
  const std::int8_t* weights = work.weights;
  for (std::int64_t row = 0; row < work.rows; ++row, column += work.line, weights += work.window * kTapBytes) {
    add_row<kCount, kStride, kWindow, kWhole, kSigned>(work, column, weights, sums);
  }
  // Copied, so that the sums above can stay in registers: what others see must lie in memory.
  int32x4_t finished[kCount][4];
  for_constants<4 * kCount>([&](auto i)
                                __attribute__((always_inline)) { finished[i / 4][i % 4] = sums[i / 4][i % 4]; });
  RowOutput output = work.output;
  output.to += x * output.stride;
  finish_rows<kCount, 4>(output, finished);
}

template <int kStride, int kWindow, bool kWhole, bool kSigned>
void depthwise_with(const RowWork& work, std::int64_t pixels) {
  std::int64_t x = 0;
  for (; x + kPixels <= pixels; x += kPixels) depthwise_pixels<kPixels, kStride, kWindow, kWhole, kSigned>(work, x);
  for (; x < pixels; ++x) depthwise_pixels<1, kStride, kWindow, kWhole, kSigned>(work, x);
}

template <bool kWhole, bool kSigned>
void depthwise_of(const RowWork& work, std::int64_t pixels) {
  const bool is_simple = work.dilation == 1 && work.stride <= 2;
  if (is_simple && work.window == 3) {
    return work.stride == 1 ? depthwise_with<1, 3, kWhole, kSigned>(work, pixels)
                            : depthwise_with<2, 3, kWhole, kSigned>(work, pixels);
  }
  if (is_simple && work.window == 5) {
    return work.stride == 1 ? depthwise_with<1, 5, kWhole, kSigned>(work, pixels)
                            : depthwise_with<2, 5, kWhole, kSigned>(work, pixels);
  }
  depthwise_with<0, 0, kWhole, kSigned>(work, pixels);
}

void depthwise_row(const RowWork& work, std::int64_t pixels) {
  if (work.output.columns == kDepthwiseHalf) {
    work.output.is_signed ? depthwise_of<true, true>(work, pixels) : depthwise_of<true, false>(work, pixels);
  } else {
    work.output.is_signed ? depthwise_of<false, true>(work, pixels) : depthwise_of<false, false>(work, pixels);
  }
}

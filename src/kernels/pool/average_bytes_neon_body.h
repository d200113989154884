// SPDX-License-Identifier: Apache-2.0
// Averages of bytes for 64-bit ARM, 16 channels at a time. No include guard: it is included once per target, see
// simd/targets.h.

// Four sums divided by `count`, halves away from zero. Sums are below 2^23 and averages below 2^9, so that the quotient
// of floats is never rounded up to a whole number for a count below 2^14.
[[gnu::always_inline]] inline int32x4_t averages(int32x4_t sums, float32x4_t count, int32x4_t half) {
  const int32x4_t away = vbslq_s32(vcltzq_s32(sums), vsubq_s32(sums, half), vaddq_s32(sums, half));
  return vcvtq_s32_f32(vdivq_f32(vcvtq_f32_s32(away), count));
}

constexpr std::int64_t kAverageChannels = 16;  // at a time

// T: int8_t or uint8_t. Fewer than 2^14 elements in a window.
template <typename T>
void average_of_window(const PoolGeometry& g, const Window& window, const T* input, PoolLimits<T> limits, T* output) {
  constexpr bool kSigned = std::is_signed_v<T>;
  constexpr std::int64_t kMostAtOnce = 120;  // what 16 bits hold the sum of
  const T* first = input + window.input_offset;
  const float32x4_t count = vdupq_n_f32(static_cast<float>(window.count()));
  const int32x4_t half = vdupq_n_s32(static_cast<std::int32_t>(window.count() / 2));
  for_each_vector<kAverageChannels>(window.channels, [&](std::int64_t c) {
    int32x4_t sums[4] = {};
    for (std::int64_t y = 0; y < window.rows; ++y) {
      const T* pixel = first + y * g.input_width * g.channels + c;
      for (std::int64_t left = window.columns; left > 0; left -= kMostAtOnce) {
        int16x8_t low = vdupq_n_s16(0), high = low;
        for (std::int64_t x = std::min(left, kMostAtOnce); x > 0; --x, pixel += g.channels) {
          if constexpr (kSigned) {
            const int8x16_t bytes = vld1q_s8(pixel);
            low = vaddw_s8(low, vget_low_s8(bytes));
            high = vaddw_high_s8(high, bytes);
          } else {
            const uint8x16_t bytes = vld1q_u8(pixel);
            low = vreinterpretq_s16_u16(vaddw_u8(vreinterpretq_u16_s16(low), vget_low_u8(bytes)));
            high = vreinterpretq_s16_u16(vaddw_high_u8(vreinterpretq_u16_s16(high), bytes));
          }
        }
        sums[0] = vaddw_s16(sums[0], vget_low_s16(low));
        sums[1] = vaddw_high_s16(sums[1], low);
        sums[2] = vaddw_s16(sums[2], vget_low_s16(high));
        sums[3] = vaddw_high_s16(sums[3], high);
      }
    }
    // An average lies between the smallest and the largest element, so it fits T.
    const int16x8_t low = vmovn_high_s32(vmovn_s32(averages(sums[0], count, half)), averages(sums[1], count, half));
    const int16x8_t high = vmovn_high_s32(vmovn_s32(averages(sums[2], count, half)), averages(sums[3], count, half));
    const int8x16_t bytes = vmovn_high_s16(vmovn_s16(low), high);
    T* to = output + window.output_offset + c;
    if constexpr (kSigned) {
      vst1q_s8(to, vminq_s8(vmaxq_s8(bytes, vdupq_n_s8(limits.low)), vdupq_n_s8(limits.high)));
    } else {
      vst1q_u8(to, vminq_u8(vmaxq_u8(vreinterpretq_u8_s8(bytes), vdupq_n_u8(limits.low)), vdupq_n_u8(limits.high)));
    }
  });
}

// SPDX-License-Identifier: Apache-2.0
// matmul/byte_scaling.h on vectors of 16 bytes for 64-bit ARM, from rows of sums to bytes in memory. The same steps as
// on other targets, so the same proof: the sum as a float, one fused multiply-add, one rounding to an integer of 16
// binary places. That rounding saturates, so nothing needs to be cut off before. No include guard: it is included once
// per target, see simd/targets.h.

#include "kernels/simd/for_constants_body.h"

constexpr int kQuad = 4;  // sums of a vector

// Where rows of results go.
struct RowOutput {
  const ByteScaling* scaling;
  std::int64_t slot;     // of the first column, in the scaling
  std::int64_t channel;  // the same one's, in the layer
  std::int64_t columns;  // that count; no others are written
  std::uint8_t* to;
  std::int64_t stride;  // bytes from row to row
  bool is_signed;
};

struct ScaleVectors {
  float32x4_t factor, above, below;
};
[[gnu::always_inline]] inline ScaleVectors load_scale(const ByteScaling& scaling, std::int64_t slot) {
  return {vld1q_f32(scaling.factor.data() + slot), vld1q_f32(scaling.above.data() + slot),
          vld1q_f32(scaling.below.data() + slot)};
}

// Sums times factor plus zero point and one half: 16 bits of result, 16 binary places.
template <bool kPlain>
[[gnu::always_inline]] inline int32x4_t scale(int32x4_t sums, const ScaleVectors& by) {
  const float32x4_t offset = kPlain ? by.above : vbslq_f32(vcltzq_s32(sums), by.below, by.above);
  return vcvtnq_s32_f32(vfmaq_f32(offset, vcvtq_f32_s32(sums), by.factor));
}

template <bool kSigned>
[[gnu::always_inline]] inline uint8x8_t saturated_bytes(int16x8_t words) {
  return kSigned ? vreinterpret_u8_s8(vqmovn_s16(words)) : vqmovun_s16(words);
}
template <bool kSigned>
[[gnu::always_inline]] inline uint8x16_t within(uint8x16_t bytes, uint8x16_t lowest, uint8x16_t highest) {
  if constexpr (kSigned) {
    const int8x16_t raised = vmaxq_s8(vreinterpretq_s8_u8(bytes), vreinterpretq_s8_u8(lowest));
    return vreinterpretq_u8_s8(vminq_s8(raised, vreinterpretq_s8_u8(highest)));
  }
  return vminq_u8(vmaxq_u8(bytes, lowest), highest);
}

// Results that floats cannot tell, by the reference's function.
template <int kQuads, bool kPlain>
[[gnu::noinline, gnu::cold]] void fix_row(const RowOutput& row, const int32x4_t* sums, std::uint8_t* to) {
  for (int q = 0; q < kQuads; ++q) {
    std::int32_t sum[kQuad], scaled[kQuad];
    vst1q_s32(sum, sums[q]);
    vst1q_s32(scaled, scale<kPlain>(sums[q], load_scale(*row.scaling, row.slot + q * kQuad)));
    for (int i = 0; i < kQuad && q * kQuad + i < row.columns; ++i) {
      if ((scaled[i] & 0xffff) >= kSurePlaces) continue;
      to[q * kQuad + i] = exact_byte(*row.scaling->exact, sum[i], row.channel + q * kQuad + i);
    }
  }
}

// kQuads: 2 or 4, 8 or 16 columns.
template <int kRows, int kQuads, bool kSigned, bool kPlain>
[[gnu::noinline]] void finish_rows(const RowOutput& row, const int32x4_t (&sums)[kRows][kQuads]) {
  ScaleVectors by[kQuads];
  for_constants<kQuads>([&](auto q)
                            __attribute__((always_inline)) { by[q] = load_scale(*row.scaling, row.slot + q * kQuad); });
  const uint8x16_t lowest = vdupq_n_u8(static_cast<std::uint8_t>(row.scaling->exact->lowest));
  const uint8x16_t highest = vdupq_n_u8(static_cast<std::uint8_t>(row.scaling->exact->highest));
  const bool is_whole = row.columns == kQuads * kQuad;
  uint16x8_t least = vdupq_n_u16(0xffff);  // binary places of all results: the closest to an integer
  std::uint8_t* to = row.to;
  for (int r = 0; r < kRows; ++r, to += row.stride) {
    uint8x8_t halves[2];
    for_constants<kQuads / 2>([&](auto h) __attribute__((always_inline)) {
      const int16x8_t a = vreinterpretq_s16_s32(scale<kPlain>(sums[r][2 * h], by[2 * h]));
      const int16x8_t b = vreinterpretq_s16_s32(scale<kPlain>(sums[r][2 * h + 1], by[2 * h + 1]));
      halves[h] = saturated_bytes<kSigned>(vuzp2q_s16(a, b));
      least = vminq_u16(least, vreinterpretq_u16_s16(vuzp1q_s16(a, b)));
    });
    uint8x16_t bytes = vcombine_u8(halves[0], halves[kQuads / 2 - 1]);
    if constexpr (!kPlain) bytes = within<kSigned>(bytes, lowest, highest);
    if (!is_whole) [[unlikely]] {
      std::uint8_t all[4 * kQuad];
      vst1q_u8(all, bytes);
      std::memcpy(to, all, static_cast<std::size_t>(row.columns));
    } else if constexpr (kQuads == 4) {
      vst1q_u8(to, bytes);
    } else {
      vst1_u8(to, vget_low_u8(bytes));
    }
  }
  if (vminvq_u16(least) < kSurePlaces) [[unlikely]] {
    for (int r = 0; r < kRows; ++r) fix_row<kQuads, kPlain>(row, sums[r], row.to + r * row.stride);
  }
}

template <int kRows, int kQuads>
void finish_rows(const RowOutput& row, const int32x4_t (&sums)[kRows][kQuads]) {
  if (row.is_signed) {
    row.scaling->is_plain ? finish_rows<kRows, kQuads, true, true>(row, sums)
                          : finish_rows<kRows, kQuads, true, false>(row, sums);
  } else {
    row.scaling->is_plain ? finish_rows<kRows, kQuads, false, true>(row, sums)
                          : finish_rows<kRows, kQuads, false, false>(row, sums);
  }
}

// SPDX-License-Identifier: Apache-2.0
// elementwise/byte_pairs.h on vectors of 16 numbers, for 64-bit ARM. No include guard: it is included once per target,
// see simd/targets.h.

constexpr int kPairs = 16;  // elements at a time

// Four times four numbers.
struct Floats16 {
  float32x4_t quads[4];
};

// Operands less their zero points, which are within 16 bits.
template <bool kSigned>
[[gnu::always_inline]] inline Floats16 load_operand(const std::uint8_t* from, std::int64_t step, std::int32_t zero) {
  const uint8x16_t bytes = step == 0 ? vdupq_n_u8(*from) : vld1q_u8(from);
  const int16x8_t zeros = vdupq_n_s16(static_cast<std::int16_t>(zero));
  const int16x8_t low = vsubq_s16(
      kSigned ? vmovl_s8(vreinterpret_s8_u8(vget_low_u8(bytes))) : vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes))),
      zeros);
  const int16x8_t high = vsubq_s16(
      kSigned ? vmovl_high_s8(vreinterpretq_s8_u8(bytes)) : vreinterpretq_s16_u16(vmovl_high_u8(bytes)), zeros);
  return {{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
           vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
}

// The real numbers, in units of 2^-bits.
template <Kind kKind>
[[gnu::always_inline]] inline int32x4_t combine(const BytePairs::Real& real, float32x4_t a, float32x4_t b) {
  const float32x4_t above = vdupq_n_f32(real.above);
  if constexpr (kKind == Kind::kSum) {
    const float32x4_t second = vfmaq_f32(above, b, vdupq_n_f32(real.factor_b));
    return vcvtnq_s32_f32(vfmaq_f32(second, a, vdupq_n_f32(real.factor_a)));
  }
  if constexpr (kKind == Kind::kExactSum) {
    const float32x4_t second = vmulq_f32(b, vdupq_n_f32(real.factor_b));
    const float32x4_t sum = vfmaq_f32(second, a, vdupq_n_f32(real.factor_a));
    return vcvtnq_s32_f32(vaddq_f32(sum, vbslq_f32(vcltzq_f32(sum), vdupq_n_f32(real.below), above)));
  }
  float32x4_t product = vmulq_f32(a, b), factor = vdupq_n_f32(real.factor_a);
  float32x4_t half = vbslq_f32(vcltzq_f32(product), vdupq_n_f32(real.below), above);
  if constexpr (kKind == Kind::kPrelu) {
    const uint32x4_t is_below = vcltzq_f32(a);
    product = vbslq_f32(is_below, product, a);
    factor = vbslq_f32(is_below, factor, vdupq_n_f32(real.factor_b));
    half = vbslq_f32(is_below, half, vdupq_n_f32(real.above_b));
  }
  return vcvtnq_s32_f32(vfmaq_f32(half, product, factor));
}

// 16 results as bytes. Saturating to 16 and to 8 bits on the way changes nothing: limits lie within 8 bits.
template <bool kSigned>
[[gnu::always_inline]] inline uint8x16_t to_bytes(const BytePairs::Real& real, const int32x4_t (&scaled)[4]) {
  const int32x4_t places = vdupq_n_s32(-real.bits);  // to the right
  const int16x8_t zero_point = vdupq_n_s16(static_cast<std::int16_t>(real.zero_point));
  const auto words = [&](int32x4_t low, int32x4_t high) __attribute__((always_inline)) {
    const int16x4_t first = vqmovn_s32(vshlq_s32(low, places));
    return vqaddq_s16(vqmovn_high_s32(first, vshlq_s32(high, places)), zero_point);
  };
  const int16x8_t low = words(scaled[0], scaled[1]), high = words(scaled[2], scaled[3]);
  if constexpr (kSigned) {
    const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(low), high);
    const int8x16_t raised = vmaxq_s8(bytes, vdupq_n_s8(static_cast<std::int8_t>(real.lowest)));
    return vreinterpretq_u8_s8(vminq_s8(raised, vdupq_n_s8(static_cast<std::int8_t>(real.highest))));
  }
  const uint8x16_t bytes = vqmovun_high_s16(vqmovun_s16(low), high);
  return vminq_u8(vmaxq_u8(bytes, vdupq_n_u8(static_cast<std::uint8_t>(real.lowest))),
                  vdupq_n_u8(static_cast<std::uint8_t>(real.highest)));
}

// Results that are too close to a border for floats to be sure.
[[gnu::noinline, gnu::cold]] uint8x16_t fix_pairs(const BytePairs& pairs, uint8x16_t bytes,
                                                  const int32x4_t (&scaled)[4], const std::uint8_t* a,
                                                  std::int64_t a_step, const std::uint8_t* b, std::int64_t b_step) {
  std::uint8_t exact[kPairs];
  std::int32_t places[kPairs];
  vst1q_u8(exact, bytes);
  for (int q = 0; q < 4; ++q) vst1q_s32(places + 4 * q, scaled[q]);
  for (int i = 0; i < kPairs; ++i) {
    const bool is_sure = (places[i] & ((1 << pairs.real().bits) - 1)) >= 2 * pairs.real().slack;
    if (!is_sure) exact[i] = pairs.exact(a[i * a_step], b[i * b_step]);
  }
  return vld1q_u8(exact);
}

template <bool kSigned, Kind kKind>
void pairs_of(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
              std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  const BytePairs::Real real = pairs.real();
  const int32x4_t mask = vdupq_n_s32((1 << real.bits) - 1);
  std::int64_t i = 0;
  for (; i + kPairs <= count; i += kPairs) {
    const std::uint8_t* at_a = a + i * a_step;
    const std::uint8_t* at_b = b + i * b_step;
    const Floats16 first = load_operand<kSigned>(at_a, a_step, real.zero_a);
    const Floats16 second = load_operand<kSigned>(at_b, b_step, real.zero_b);
    int32x4_t scaled[4], least = mask;
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
      scaled[q] = combine<kKind>(real, first.quads[q], second.quads[q]);
      least = vminq_s32(least, vandq_s32(scaled[q], mask));
    }
    uint8x16_t bytes = to_bytes<kSigned>(real, scaled);
    if (vminvq_s32(least) < 2 * real.slack) [[unlikely]] {
      const int32x4_t kept[4] = {scaled[0], scaled[1], scaled[2], scaled[3]};
      bytes = fix_pairs(pairs, bytes, kept, at_a, a_step, at_b, b_step);
    }
    vst1q_u8(out + i, bytes);
  }
  if (i == count) return;
  // The rest, filled up to a vector.
  std::uint8_t rest_a[kPairs] = {}, rest_b[kPairs] = {}, rest_out[kPairs];
  const auto rest = static_cast<std::size_t>(count - i);
  std::memcpy(rest_a, a + i * a_step, a_step == 0 ? 1 : rest);
  std::memcpy(rest_b, b + i * b_step, b_step == 0 ? 1 : rest);
  pairs_of<kSigned, kKind>(pairs, rest_a, a_step, rest_b, b_step, rest_out, kPairs);
  std::memcpy(out + i, rest_out, rest);
}

void pairs_row(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
               std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  REEF_BY_KIND(pairs_of, pairs.real(), pairs, a, a_step, b, b_step, out, count);
}

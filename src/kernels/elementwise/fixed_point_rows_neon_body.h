// SPDX-License-Identifier: Apache-2.0
// elementwise/fixed_point_rows.h for 64-bit ARM, which has the first of the two roundings as an instruction. No include
// guard: it is included once per target, see simd/targets.h.

// numeric::multiply of four numbers.
struct VectorMultiplier {
  int32x4_t mantissa, mask, half_mask, left, right;

  explicit VectorMultiplier(numeric::Multiplier factor) {
    const int to_right = factor.shift > 0 ? 0 : -factor.shift;
    const auto ones = static_cast<std::int32_t>((std::int64_t{1} << to_right) - 1);
    mantissa = vdupq_n_s32(factor.mantissa);
    mask = vdupq_n_s32(ones);
    half_mask = vdupq_n_s32(ones >> 1);
    left = vdupq_n_s32(factor.shift > 0 ? factor.shift : 0);
    right = vdupq_n_s32(-to_right);  // negative: to the right
  }

  [[gnu::always_inline]] int32x4_t operator()(int32x4_t numbers) const {
    const int32x4_t high = vqrdmulhq_s32(vshlq_s32(numbers, left), mantissa);
    const int32x4_t threshold = vsubq_s32(half_mask, vshrq_n_s32(high, 31));
    const uint32x4_t is_above = vcgtq_s32(vandq_s32(high, mask), threshold);
    return vsubq_s32(vshlq_s32(high, right), vreinterpretq_s32_u32(is_above));
  }
};

// Eight results within a byte's limits, to bytes.
[[gnu::always_inline]] inline void store_bytes(const ByteRequantize& q, int32x4_t first, int32x4_t second,
                                               bool is_signed, void* out) {
  const auto limited = [&](int32x4_t scaled) __attribute__((always_inline)) {
    const int32x4_t offset = vaddq_s32(scaled, vdupq_n_s32(q.zero_point));
    return vminq_s32(vmaxq_s32(offset, vdupq_n_s32(q.lowest)), vdupq_n_s32(q.highest));
  };
  const int16x8_t words = vcombine_s16(vmovn_s32(limited(first)), vmovn_s32(limited(second)));
  vst1_u8(static_cast<std::uint8_t*>(out), is_signed ? vreinterpret_u8_s8(vmovn_s16(words)) : vqmovun_s16(words));
}

// Elements [0, count - count % 8).
template <typename T>
void requantize_row(const ByteRequantize& q, const std::int64_t* sums, std::int64_t count, T* out) {
  const VectorMultiplier multiply(q.factor);
  const auto load = [&](const std::int64_t* from) __attribute__((always_inline)) {
    return vcombine_s32(vmovn_s64(vld1q_s64(from)), vmovn_s64(vld1q_s64(from + 2)));
  };
  for (std::int64_t i = 0; i + 8 <= count; i += 8) {
    store_bytes(q, multiply(load(sums + i)), multiply(load(sums + i + 4)), std::is_signed_v<T>, out + i);
  }
}

// One operand of four elements, brought to the common scale.
struct VectorRescale {
  VectorMultiplier multiply;
  int16x8_t zero_point;
  int32x4_t left_shift;

  explicit VectorRescale(const Rescale& rescale)
      : multiply(rescale.factor),
        zero_point(vdupq_n_s16(static_cast<std::int16_t>(rescale.zero_point))),
        left_shift(vdupq_n_s32(rescale.left_shift)) {}
  [[gnu::always_inline]] int32x4x2_t operator()(const std::int8_t* from) const {
    const int16x8_t numbers = vsubq_s16(vmovl_s8(vld1_s8(from)), zero_point);
    return {{multiply(vshlq_s32(vmovl_s16(vget_low_s16(numbers)), left_shift)),
             multiply(vshlq_s32(vmovl_high_s16(numbers), left_shift))}};
  }
};

// Elements [0, count - count % 8).
void squared_differences(const SquaredDifference& s, const std::int8_t* x, std::int64_t x_step, const std::int8_t* y,
                         std::int64_t y_step, std::int8_t* out, std::int64_t count) {
  const VectorMultiplier multiply(s.result.factor);
  const VectorRescale rescale_x(s.x_scaling), rescale_y(s.y_scaling);
  const int32x4_t single_x = vdupq_n_s32(s.x_scaling(*x)), single_y = vdupq_n_s32(s.y_scaling(*y));
  for (std::int64_t i = 0; i + 8 <= count; i += 8) {
    const int32x4x2_t a = x_step == 0 ? int32x4x2_t{{single_x, single_x}} : rescale_x(x + i);
    const int32x4x2_t b = y_step == 0 ? int32x4x2_t{{single_y, single_y}} : rescale_y(y + i);
    const int32x4_t first = vsubq_s32(a.val[0], b.val[0]), second = vsubq_s32(a.val[1], b.val[1]);
    store_bytes(s.result, multiply(vmulq_s32(first, first)), multiply(vmulq_s32(second, second)), true, out + i);
  }
}

// SPDX-License-Identifier: Apache-2.0
// elementwise/fixed_point_rows.h for SSE4 and AVX2. No include guard: it is included once per target, see
// simd/targets.h.

#include "kernels/simd/vectors_body.h"

// numeric::multiply of a vector of numbers; its shift is at most 30.
struct VectorMultiplier {
  Ints mantissa, mask, half_mask, half;
  __m128i left, right;

  explicit VectorMultiplier(numeric::Multiplier factor) {
    const int to_right = factor.shift > 0 ? 0 : -factor.shift;
    const auto ones = static_cast<std::int32_t>((std::int64_t{1} << to_right) - 1);
    mantissa = REEF_MM(set1_epi32)(factor.mantissa);
    mask = REEF_MM(set1_epi32)(ones);
    half_mask = REEF_MM(set1_epi32)(ones >> 1);
    half = REEF_MM(set1_epi64x)(std::int64_t{1} << 30);
    left = _mm_cvtsi32_si128(factor.shift > 0 ? factor.shift : 0);
    right = _mm_cvtsi32_si128(to_right);
  }

  [[gnu::always_inline]] Ints operator()(Ints numbers) const {
    const Ints x = REEF_MM(sll_epi32)(numbers, left);
    const Ints even = REEF_MM(add_epi64)(REEF_MM(mul_epi32)(x, mantissa), half);
    const Ints odd = REEF_MM(add_epi64)(REEF_MM(mul_epi32)(REEF_MM(srli_epi64)(x, 32), mantissa), half);
    const Ints high = REEF_MM(blend_epi16)(REEF_MM(srli_epi64)(even, 31), REEF_MM(slli_epi64)(odd, 1), 0xCC);
    const Ints remainder = high & mask;
    const Ints threshold = REEF_MM(add_epi32)(half_mask, REEF_MM(srli_epi32)(high, 31));
    return REEF_MM(sub_epi32)(REEF_MM(sra_epi32)(high, right), REEF_MM(cmpgt_epi32)(remainder, threshold));
  }
};

// A vector of results within a byte's limits, to bytes.
[[gnu::always_inline]] inline void store_bytes(const ByteRequantize& q, Ints scaled, bool is_signed, void* out) {
  const Ints offset = REEF_MM(add_epi32)(scaled, REEF_MM(set1_epi32)(q.zero_point));
  const Ints limited =
      REEF_MM(min_epi32)(REEF_MM(max_epi32)(offset, REEF_MM(set1_epi32)(q.lowest)), REEF_MM(set1_epi32)(q.highest));
  const __m128i words = _mm_packs_epi32(first_half(limited), second_half(limited));
  const __m128i bytes = is_signed ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
  const std::int64_t all = _mm_cvtsi128_si64(bytes);
  std::memcpy(out, &all, kLanes);
}

// The lower halves of kLanes numbers of 64 bits.
[[gnu::always_inline]] inline Ints lower_halves(const std::int64_t* from) {
  const Floats low = REEF_MM(loadu_ps)(reinterpret_cast<const float*>(from));
  const Floats high = REEF_MM(loadu_ps)(reinterpret_cast<const float*>(from + kLanes / 2));
  return packed_in_order(reinterpret_cast<Ints>(REEF_MM(shuffle_ps)(low, high, 0x88)));
}

// Elements [0, count - count % 8).
template <typename T>
void requantize_row(const ByteRequantize& q, const std::int64_t* sums, std::int64_t count, T* out) {
  const VectorMultiplier multiply(q.factor);
  for (std::int64_t i = 0; i < count - count % 8; i += kLanes)
    store_bytes(q, multiply(lower_halves(sums + i)), std::is_signed_v<T>, out + i);
}

// One operand of a vector of elements, brought to the common scale.
struct VectorRescale {
  VectorMultiplier multiply;
  Ints zero_point;
  __m128i left_shift;

  explicit VectorRescale(const Rescale& rescale)
      : multiply(rescale.factor),
        zero_point(REEF_MM(set1_epi32)(rescale.zero_point)),
        left_shift(_mm_cvtsi32_si128(rescale.left_shift)) {}
  [[gnu::always_inline]] Ints operator()(const std::int8_t* from) const {
    return multiply(REEF_MM(sll_epi32)(REEF_MM(sub_epi32)(bytes_as_ints<true>(from), zero_point), left_shift));
  }
};

// Elements [0, count - count % 8).
void squared_differences(const SquaredDifference& s, const std::int8_t* x, std::int64_t x_step, const std::int8_t* y,
                         std::int64_t y_step, std::int8_t* out, std::int64_t count) {
  const VectorMultiplier multiply(s.result.factor);
  const VectorRescale rescale_x(s.x_scaling), rescale_y(s.y_scaling);
  const Ints single_x = REEF_MM(set1_epi32)(s.x_scaling(*x)), single_y = REEF_MM(set1_epi32)(s.y_scaling(*y));
  for (std::int64_t i = 0; i < count - count % 8; i += kLanes) {
    const Ints difference =
        REEF_MM(sub_epi32)(x_step == 0 ? single_x : rescale_x(x + i), y_step == 0 ? single_y : rescale_y(y + i));
    store_bytes(s.result, multiply(REEF_MM(mullo_epi32)(difference, difference)), true, out + i);
  }
}

// SPDX-License-Identifier: Apache-2.0
// elementwise/byte_pairs.h on vectors of 4 or 8 numbers, for SSE4, AVX2 and AVX-512. No include guard: it is included
// once per target, see simd/targets.h.

#include "kernels/simd/vectors_body.h"

template <bool kSigned>
[[gnu::always_inline]] inline Floats load_operand(const std::uint8_t* from, std::int64_t step, std::int32_t zero) {
  if (step == 0)
    return REEF_MM(set1_ps)(static_cast<float>((kSigned ? static_cast<std::int8_t>(*from) : *from) - zero));
  const Ints wide = bytes_as_ints<kSigned>(from);
  return REEF_MM(cvtepi32_ps)(REEF_MM(sub_epi32)(wide, REEF_MM(set1_epi32)(zero)));
}

// A vector of results, and how sure they are.
template <Kind kKind>
[[gnu::always_inline]] inline Ints combine(const BytePairs::Real& real, Floats a, Floats b) {
  if constexpr (kKind == Kind::kSum) {
    const Floats second = multiply_add(b, REEF_MM(set1_ps)(real.factor_b), REEF_MM(set1_ps)(real.above));
    return REEF_MM(cvtps_epi32)(multiply_add(a, REEF_MM(set1_ps)(real.factor_a), second));
  }
  if constexpr (kKind == Kind::kExactSum) {
    const Floats second = REEF_MM(mul_ps)(b, REEF_MM(set1_ps)(real.factor_b));
    const Floats sum = multiply_add(a, REEF_MM(set1_ps)(real.factor_a), second);
    const Floats half = REEF_MM(blendv_ps)(REEF_MM(set1_ps)(real.above), REEF_MM(set1_ps)(real.below), sum);
    return REEF_MM(cvtps_epi32)(REEF_MM(add_ps)(sum, half));
  }
  Floats product = REEF_MM(mul_ps)(a, b), factor = REEF_MM(set1_ps)(real.factor_a);
  Floats half = REEF_MM(blendv_ps)(REEF_MM(set1_ps)(real.above), REEF_MM(set1_ps)(real.below), product);
  if constexpr (kKind == Kind::kPrelu) {
    product = REEF_MM(blendv_ps)(a, product, a);
    factor = REEF_MM(blendv_ps)(REEF_MM(set1_ps)(real.factor_b), factor, a);
    half = REEF_MM(blendv_ps)(REEF_MM(set1_ps)(real.above_b), half, a);
  }
  return REEF_MM(cvtps_epi32)(multiply_add(product, factor, half));
}

// Four vectors of results as bytes. Saturating to 16 and to 8 bits on the way changes nothing: limits lie within 8
// bits.
template <bool kSigned>
[[gnu::always_inline]] inline Ints to_bytes(const BytePairs::Real& real, const Ints* results, __m128i bits) {
  Ints words[2];
  for (int i = 0; i < 2; ++i) {
    const Ints low = REEF_MM(sra_epi32)(results[2 * i], bits), high = REEF_MM(sra_epi32)(results[2 * i + 1], bits);
    const Ints zero_point = REEF_MM(set1_epi16)(static_cast<std::int16_t>(real.zero_point));
    words[i] = REEF_MM(adds_epi16)(REEF_MM(packs_epi32)(low, high), zero_point);
  }
  Ints bytes = kSigned ? REEF_MM(packs_epi16)(words[0], words[1]) : REEF_MM(packus_epi16)(words[0], words[1]);
#if REEF_VECTOR_BYTES == 32
  bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));  // packing works on halves
#endif
  const Ints lowest = REEF_MM(set1_epi8)(static_cast<char>(real.lowest));
  const Ints highest = REEF_MM(set1_epi8)(static_cast<char>(real.highest));
  return kSigned ? REEF_MM(min_epi8)(REEF_MM(max_epi8)(bytes, lowest), highest)
                 : REEF_MM(min_epu8)(REEF_MM(max_epu8)(bytes, lowest), highest);
}

template <bool kSigned, Kind kKind>
void pairs_of(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
              std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  const BytePairs::Real real = pairs.real();
  const Ints mask = REEF_MM(set1_epi32)((1 << real.bits) - 1), sure = REEF_MM(set1_epi32)(2 * real.slack);
  const __m128i bits = _mm_cvtsi32_si128(real.bits);
  std::int64_t i = 0;
  for (; i + kVectorBytes <= count; i += kVectorBytes) {
    const std::uint8_t* at_a = a + i * a_step;
    const std::uint8_t* at_b = b + i * b_step;
    Ints scaled[4];
    Ints least = mask;
    for (int k = 0; k < 4; ++k) {
      scaled[k] = combine<kKind>(real, load_operand<kSigned>(at_a + kLanes * k * a_step, a_step, real.zero_a),
                                 load_operand<kSigned>(at_b + kLanes * k * b_step, b_step, real.zero_b));
      least = REEF_MM(min_epi32)(least, scaled[k] & mask);
    }
    Ints bytes = to_bytes<kSigned>(real, scaled, bits);
    if (!is_zero(REEF_MM(cmpgt_epi32)(sure, least))) [[unlikely]] {
      // Some result is too close to a border for floats to be sure.
      std::uint8_t exact[kVectorBytes];
      store_ints(exact, bytes);
      for (int k = 0; k < 4; ++k) {
        const Ints unsure = REEF_MM(cmpgt_epi32)(sure, scaled[k] & mask);
        const int lanes = REEF_MM(movemask_ps)(reinterpret_cast<Floats>(unsure));
        for (int lane = 0; lane < kLanes; ++lane) {
          const int at = kLanes * k + lane;
          if (lanes >> lane & 1) exact[at] = pairs.exact(at_a[at * a_step], at_b[at * b_step]);
        }
      }
      bytes = load_ints(exact);
    }
    store_ints(out + i, bytes);
  }
  if (i == count) return;
  // The rest, filled up to a vector.
  std::uint8_t rest_a[kVectorBytes] = {}, rest_b[kVectorBytes] = {}, rest_out[kVectorBytes];
  const auto rest = static_cast<std::size_t>(count - i);
  std::memcpy(rest_a, a + i * a_step, a_step == 0 ? 1 : rest);
  std::memcpy(rest_b, b + i * b_step, b_step == 0 ? 1 : rest);
  pairs_of<kSigned, kKind>(pairs, rest_a, a_step, rest_b, b_step, rest_out, kVectorBytes);
  std::memcpy(out + i, rest_out, rest);
}

void pairs_row(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
               std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  REEF_BY_KIND(pairs_of, pairs.real(), pairs, a, a_step, b, b_step, out, count);
}

// SPDX-License-Identifier: Apache-2.0
// elementwise/byte_pairs.h on vectors of 16 numbers, 64 at a time, for AVX-512. The same arithmetic as
// byte_pairs_body.h, which does what is left. No include guard: see simd/targets.h.

template <bool kSigned>
[[gnu::always_inline]] inline __m512 load_wide_operand(const std::uint8_t* from, __m512i zero) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  const __m512i wide = kSigned ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
  return _mm512_cvtepi32_ps(_mm512_sub_epi32(wide, zero));
}

template <bool kSigned>
float number_of(std::uint8_t byte, std::int32_t zero) {
  return static_cast<float>((kSigned ? static_cast<std::int8_t>(byte) : byte) - zero);
}

template <Kind kKind>
[[gnu::always_inline]] inline __m512i combine_wide(const BytePairs::Real& real, __m512 a, __m512 b) {
  if constexpr (kKind == Kind::kSum) {
    const __m512 second = _mm512_fmadd_ps(b, _mm512_set1_ps(real.factor_b), _mm512_set1_ps(real.above));
    return _mm512_cvtps_epi32(_mm512_fmadd_ps(a, _mm512_set1_ps(real.factor_a), second));
  }
  if constexpr (kKind == Kind::kExactSum) {
    const __m512 second = _mm512_mul_ps(b, _mm512_set1_ps(real.factor_b));
    const __m512 sum = _mm512_fmadd_ps(a, _mm512_set1_ps(real.factor_a), second);
    const __mmask16 is_negative = _mm512_movepi32_mask(_mm512_castps_si512(sum));
    const __m512 half = _mm512_mask_mov_ps(_mm512_set1_ps(real.above), is_negative, _mm512_set1_ps(real.below));
    return _mm512_cvtps_epi32(_mm512_add_ps(sum, half));
  }
  __m512 product = _mm512_mul_ps(a, b), factor = _mm512_set1_ps(real.factor_a);
  const __mmask16 is_negative = _mm512_movepi32_mask(_mm512_castps_si512(product));
  __m512 half = _mm512_mask_mov_ps(_mm512_set1_ps(real.above), is_negative, _mm512_set1_ps(real.below));
  if constexpr (kKind == Kind::kPrelu) {
    const __mmask16 is_below = _mm512_movepi32_mask(_mm512_castps_si512(a));
    product = _mm512_mask_mov_ps(a, is_below, product);
    factor = _mm512_mask_mov_ps(_mm512_set1_ps(real.factor_b), is_below, factor);
    half = _mm512_mask_mov_ps(_mm512_set1_ps(real.above_b), is_below, half);
  }
  return _mm512_cvtps_epi32(_mm512_fmadd_ps(product, factor, half));
}

template <bool kSigned>
[[gnu::always_inline]] inline __m512i to_wide_bytes(const BytePairs::Real& real, const __m512i (&results)[4]) {
  const __m512i words[2] = {_mm512_packs_epi32(results[0], results[1]), _mm512_packs_epi32(results[2], results[3])};
  const __m512i packed = kSigned ? _mm512_packs_epi16(words[0], words[1]) : _mm512_packus_epi16(words[0], words[1]);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i lowest = _mm512_set1_epi8(static_cast<char>(real.lowest));
  const __m512i highest = _mm512_set1_epi8(static_cast<char>(real.highest));
  const __m512i limited = kSigned ? _mm512_min_epi8(_mm512_max_epi8(packed, lowest), highest)
                                  : _mm512_min_epu8(_mm512_max_epu8(packed, lowest), highest);
  return _mm512_permutexvar_epi32(order, limited);
}

// Elements [0, count - count % 64); returns how many.
template <bool kSigned, Kind kKind>
std::int64_t wide_pairs_of(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
                           std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  const BytePairs::Real real = pairs.real();
  const __m512i mask = _mm512_set1_epi32((1 << real.bits) - 1), sure = _mm512_set1_epi32(2 * real.slack);
  const __m512i zero_a = _mm512_set1_epi32(real.zero_a), zero_b = _mm512_set1_epi32(real.zero_b);
  const __m512i zero_point = _mm512_set1_epi32(real.zero_point);
  const __m128i bits = _mm_cvtsi32_si128(real.bits);
  const __m512 same_a = _mm512_set1_ps(number_of<kSigned>(*a, real.zero_a));
  const __m512 same_b = _mm512_set1_ps(number_of<kSigned>(*b, real.zero_b));
  std::int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    __m512i results[4];
    std::uint64_t unsure = 0;
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const std::int64_t at = i + part * 16;
      const __m512 first = a_step == 0 ? same_a : load_wide_operand<kSigned>(a + at, zero_a);
      const __m512 second = b_step == 0 ? same_b : load_wide_operand<kSigned>(b + at, zero_b);
      const __m512i scaled = combine_wide<kKind>(real, first, second);
      unsure |= static_cast<std::uint64_t>(_mm512_cmpgt_epi32_mask(sure, _mm512_and_si512(scaled, mask))) << part * 16;
      results[part] = _mm512_add_epi32(_mm512_sra_epi32(scaled, bits), zero_point);
    }
    const __m512i bytes = to_wide_bytes<kSigned>(real, results);
    if (unsure == 0) [[likely]] {
      _mm512_storeu_si512(out + i, bytes);
      continue;
    }
    alignas(64) std::uint8_t fixed[64];
    _mm512_store_si512(fixed, bytes);
    for (; unsure != 0; unsure &= unsure - 1) {
      const int k = std::countr_zero(unsure);
      fixed[k] = pairs.exact(a[(i + k) * a_step], b[(i + k) * b_step]);
    }
    std::memcpy(out + i, fixed, 64);
  }
  return i;
}

std::int64_t wide_pairs_row(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
                            std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  return REEF_BY_KIND(wide_pairs_of, pairs.real(), pairs, a, a_step, b, b_step, out, count);
}

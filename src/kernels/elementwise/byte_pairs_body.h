// SPDX-License-Identifier: Apache-2.0
// elementwise/byte_pairs.h on vectors of 8 numbers, for AVX2 and AVX-512. No include guard: it is included once per
// target, see simd/targets.h.

[[gnu::always_inline]] inline __m256 load_operand(const BytePairs::Real& real, const std::uint8_t* from,
                                                  std::int64_t step, std::int32_t zero) {
  if (step == 0)
    return _mm256_set1_ps(static_cast<float>((real.is_signed ? static_cast<std::int8_t>(*from) : *from) - zero));
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
  const __m256i wide = real.is_signed ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  return _mm256_cvtepi32_ps(_mm256_sub_epi32(wide, _mm256_set1_epi32(zero)));
}

// 8 results as bytes, and how sure they are.
[[gnu::always_inline]] inline __m256i combine(const BytePairs::Real& real, __m256 a, __m256 b) {
  if (real.is_product) {
    const __m256 product = _mm256_mul_ps(a, b);
    const __m256 half = _mm256_blendv_ps(_mm256_set1_ps(real.above), _mm256_set1_ps(real.below), product);
    return _mm256_cvtps_epi32(_mm256_fmadd_ps(product, _mm256_set1_ps(real.factor_a), half));
  }
  const __m256 second = _mm256_fmadd_ps(b, _mm256_set1_ps(real.factor_b), _mm256_set1_ps(real.above));
  return _mm256_cvtps_epi32(_mm256_fmadd_ps(a, _mm256_set1_ps(real.factor_a), second));
}

[[gnu::always_inline]] inline __m128i to_bytes(const BytePairs::Real& real, __m256i results) {
  const __m256i offset = _mm256_add_epi32(results, _mm256_set1_epi32(real.zero_point));
  const __m256i limited =
      _mm256_min_epi32(_mm256_max_epi32(offset, _mm256_set1_epi32(real.lowest)), _mm256_set1_epi32(real.highest));
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(limited), _mm256_extracti128_si256(limited, 1));
  return real.is_signed ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
}

// Elements [0, count - count % 8); returns how many.
std::int64_t pairs_row(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
                       std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  const BytePairs::Real real = pairs.real();
  const __m256i mask = _mm256_set1_epi32((1 << real.bits) - 1), sure = _mm256_set1_epi32(2 * real.slack);
  const __m128i bits = _mm_cvtsi32_si128(real.bits);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const std::uint8_t* at_a = a + i * a_step;
    const std::uint8_t* at_b = b + i * b_step;
    const __m256i scaled =
        combine(real, load_operand(real, at_a, a_step, real.zero_a), load_operand(real, at_b, b_step, real.zero_b));
    const __m256i unsure = _mm256_cmpgt_epi32(sure, _mm256_and_si256(scaled, mask));
    const int lanes = _mm256_movemask_ps(_mm256_castsi256_ps(unsure));
    alignas(16) std::uint8_t bytes[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes), to_bytes(real, _mm256_sra_epi32(scaled, bits)));
    if (lanes != 0) [[unlikely]] {
      for (int k = 0; k < 8; ++k) {
        if (lanes >> k & 1) bytes[k] = pairs.exact(at_a[k * a_step], at_b[k * b_step]);
      }
    }
    std::memcpy(out + i, bytes, 8);
  }
  return i;
}

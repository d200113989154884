// SPDX-License-Identifier: Apache-2.0
// Products of two rows with four for AVX2, sixteen numbers at a time. No include guard: it is included once per target,
// see simd/targets.h.

// Pairs of products are added in 32 bits: |a| <= 32768 by |b| <= 255 fits.
[[gnu::always_inline]] inline __m256i load_16(const std::int16_t* from, bool is_half) {
  if (is_half) return _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// The sums of the lanes of four vectors.
[[gnu::always_inline]] inline __m128i lane_sums(const __m256i (&v)[4]) {
  const __m256i pairs = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
  return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
}

template <int kRows>
void products_with_4(const std::int16_t* a, std::int64_t a_stride, const std::int16_t* const (&b)[4],
                     std::int64_t count, std::int32_t (&sums)[2][4]) {
  __m256i totals[kRows][4] = {};
  for (std::int64_t k = 0; k < count; k += 16) {
    const bool is_half = count - k < 16;
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const __m256i y = load_16(b[c] + k, is_half);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        totals[r][c] = _mm256_add_epi32(totals[r][c], _mm256_madd_epi16(load_16(a + r * a_stride + k, is_half), y));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(sums[r]), lane_sums(totals[r]));
}

void products_of_rows(const std::int16_t* a, std::int64_t a_stride, bool two, const std::int16_t* const (&b)[4],
                      std::int64_t count, std::int32_t (&sums)[2][4]) {
  two ? products_with_4<2>(a, a_stride, b, count, sums) : products_with_4<1>(a, a_stride, b, count, sums);
}

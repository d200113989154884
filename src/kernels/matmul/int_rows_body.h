// SPDX-License-Identifier: Apache-2.0
// Products of two rows with four for SSE4 and AVX2, a vector of 16-bit numbers at a time. No include guard: it is
// included once per target, see simd/targets.h.

#include "kernels/simd/vectors_body.h"

constexpr int kWords = kVectorBytes / 2;

// Pairs of products are added in 32 bits: |a| <= 32768 by |b| <= 255 fits. A row may end with 8 numbers.
[[gnu::always_inline]] inline Ints load_words(const std::int16_t* from, [[maybe_unused]] bool is_half) {
#if REEF_VECTOR_BYTES == 32
  if (is_half) return _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#endif
  return load_ints(from);
}

// The sums of the lanes of four vectors.
[[gnu::always_inline]] inline __m128i lane_sums(const Ints (&v)[4]) {
  const Ints pairs = REEF_MM(hadd_epi32)(REEF_MM(hadd_epi32)(v[0], v[1]), REEF_MM(hadd_epi32)(v[2], v[3]));
#if REEF_VECTOR_BYTES == 32
  return _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
#else
  return pairs;
#endif
}

template <int kRows>
void products_with_4(const std::int16_t* a, std::int64_t a_stride, const std::int16_t* const (&b)[4],
                     std::int64_t count, std::int32_t (&sums)[2][4]) {
  Ints totals[kRows][4] = {};
  for (std::int64_t k = 0; k < count; k += kWords) {
    const bool is_half = count - k < kWords;
#pragma GCC unroll 4
    for (int c = 0; c < 4; ++c) {
      const Ints y = load_words(b[c] + k, is_half);
#pragma GCC unroll 2
      for (int r = 0; r < kRows; ++r) {
        totals[r][c] =
            REEF_MM(add_epi32)(totals[r][c], REEF_MM(madd_epi16)(load_words(a + r * a_stride + k, is_half), y));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) _mm_storeu_si128(reinterpret_cast<__m128i*>(sums[r]), lane_sums(totals[r]));
}

void products_of_rows(const std::int16_t* a, std::int64_t a_stride, bool two, const std::int16_t* const (&b)[4],
                      std::int64_t count, std::int32_t (&sums)[2][4]) {
  two ? products_with_4<2>(a, a_stride, b, count, sums) : products_with_4<1>(a, a_stride, b, count, sums);
}

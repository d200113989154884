// SPDX-License-Identifier: Apache-2.0
// Products of up to four rows with four for AVX-512 with VNNI, 32 numbers at a time. No include guard: it is included
// once per target, see simd/targets.h.

// Pairs of products are added in 32 bits: |a| <= 32768 by |b| <= 255 fits. In assembler, so that the sums stay where
// they are: gcc 12 moves what its own function returns to another register.
[[gnu::always_inline]] inline void add_pairs(__m512i& sums, __m512i a, __m512i b) {
  asm("vpdpwssd %2, %1, %0" : "+v"(sums) : "v"(a), "v"(b));
}

// The sums of the lanes of four vectors, which fit 32 bits.
[[gnu::always_inline]] inline void store_lane_sums(const __m512i (&v)[4], std::int64_t* to) {
  __m256i halves[4];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c)
    halves[c] = _mm256_add_epi32(_mm512_castsi512_si256(v[c]), _mm512_extracti64x4_epi64(v[c], 1));
  const __m256i pairs =
      _mm256_hadd_epi32(_mm256_hadd_epi32(halves[0], halves[1]), _mm256_hadd_epi32(halves[2], halves[3]));
  const __m128i sums = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_cvtepi32_epi64(sums));
}
// The same where only each lane fits 32 bits.
[[gnu::always_inline]] inline void store_wide_lane_sums(const __m512i (&v)[4], std::int64_t* to) {
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i low = _mm512_cvtepi32_epi64(_mm512_castsi512_si256(v[c]));
    const __m512i high = _mm512_cvtepi32_epi64(_mm512_extracti64x4_epi64(v[c], 1));
    to[c] = _mm512_reduce_add_epi64(_mm512_add_epi64(low, high));
  }
}

template <bool kIsWhole>
[[gnu::always_inline]] inline __m512i load_32(const std::int16_t* from, __mmask32 mask) {
  return kIsWhole ? _mm512_loadu_si512(from) : _mm512_maskz_loadu_epi16(mask, from);
}

// Products of 32 numbers, or of those that `mask` has.
template <int kRows, bool kIsWhole>
[[gnu::always_inline]] inline void add_step(const std::int16_t* a, std::int64_t a_stride,
                                            const std::int16_t* const (&b)[4], std::int64_t k, __mmask32 mask,
                                            __m512i (&totals)[kRows][4]) {
  __m512i x[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) x[r] = load_32<kIsWhole>(a + r * a_stride + k, mask);
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i y = load_32<kIsWhole>(b[c] + k, mask);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) add_pairs(totals[r][c], x[r], y);
  }
}

template <int kRows>
void products_with_4(const std::int16_t* a, std::int64_t a_stride, const std::int16_t* const (&b)[4],
                     std::int64_t count, bool is_wide, std::int64_t (&sums)[4][4]) {
  __m512i totals[kRows][4] = {};
  std::int64_t k = 0;
  for (; k + 32 <= count; k += 32) add_step<kRows, true>(a, a_stride, b, k, 0, totals);
  if (k < count) {
    const auto mask = static_cast<__mmask32>((std::uint64_t{1} << (count - k)) - 1);
    add_step<kRows, false>(a, a_stride, b, k, mask, totals);
  }
  for (int r = 0; r < kRows; ++r)
    is_wide ? store_wide_lane_sums(totals[r], sums[r]) : store_lane_sums(totals[r], sums[r]);
}

// Adds the products of all rows with four. Rows and columns of `b` beyond `width` are not added.
void add_products_of_rows(const std::int16_t* a, std::int64_t a_stride, std::int64_t rows,
                          const std::int16_t* const (&b)[4], std::int64_t width, std::int64_t count, bool is_wide,
                          std::int64_t* to, std::int64_t to_stride) {
  std::int64_t sums[4][4];
  for (std::int64_t r = 0; r < rows; r += 4) {
    const std::int64_t together = std::min<std::int64_t>(4, rows - r);
    const std::int16_t* from = a + r * a_stride;
    if (together == 4) products_with_4<4>(from, a_stride, b, count, is_wide, sums);
    if (together == 3) products_with_4<3>(from, a_stride, b, count, is_wide, sums);
    if (together == 2) products_with_4<2>(from, a_stride, b, count, is_wide, sums);
    if (together == 1) products_with_4<1>(from, a_stride, b, count, is_wide, sums);
    for (std::int64_t i = 0; i < together; ++i) {
      for (std::int64_t j = 0; j < width; ++j) to[(r + i) * to_stride + j] += sums[i][j];
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// reduce/extreme_byte.h for SSE4, and for AVX2, which needs fewer moves. No include guard: it is included once per
// target, see simd/targets.h.

// Rows of 16 to 32 bytes: both ends of a row in a vector each. Bits are flipped so that the number wanted is the
// smallest: there is an instruction for the smallest of eight words.
template <typename Index>
void search_short_rows(const std::uint8_t* row, std::int64_t rows, std::int64_t count, int flip, Index* at) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip ^ 0xFF));
  for (std::int64_t i = 0; i < rows; ++i, row += count) {
    const __m128i head = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row)), flips);
    const __m128i tail = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + count - 16)), flips);
    const __m128i both = _mm_min_epu8(head, tail);
    const __m128i words = _mm_min_epu8(both, _mm_srli_epi16(both, 8));
    const __m128i least = _mm_minpos_epu16(_mm_and_si128(words, _mm_set1_epi16(0xFF)));
    const __m128i wanted = _mm_shuffle_epi8(least, _mm_setzero_si128());
    const auto in_head = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(head, wanted)));
    const auto in_tail = static_cast<std::uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(tail, wanted)));
    at[i] = static_cast<Index>(std::countr_zero(in_head | in_tail << (count - 16)));
  }
}

// SPDX-License-Identifier: Apache-2.0
// activation/softmax_bytes.h for AVX2: eight elements of a row at a time. No include guard: it is included once per
// target, see simd/targets.h.

template <typename In>
[[gnu::always_inline]] inline __m256i depths_below(const In* row, __m256i maximum) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row));
  const __m256i wide = std::is_signed_v<In> ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  return _mm256_sub_epi32(maximum, wide);
}

// The largest of a row of 16 elements or more; vectors overlap at the end.
template <typename In>
In highest_of(const In* row, std::int64_t count) {
  const __m128i flips = _mm_set1_epi8(static_cast<char>(std::is_signed_v<In> ? 0x80 : 0));
  __m128i best = _mm_setzero_si128();
  for (std::int64_t i = 0; i < count; i += 16) {
    const auto* from = reinterpret_cast<const __m128i*>(row + std::min(i, count - 16));
    best = _mm_max_epu8(best, _mm_xor_si128(_mm_loadu_si128(from), flips));
  }
  // There is an instruction for the smallest of eight words.
  const __m128i least = _mm_xor_si128(best, _mm_set1_epi8(static_cast<char>(0xFF)));
  const __m128i words = _mm_and_si128(_mm_min_epu8(least, _mm_srli_epi16(least, 8)), _mm_set1_epi16(0xFF));
  const int highest = 0xFF ^ (_mm_cvtsi128_si32(_mm_minpos_epu16(words)) & 0xFF);
  return static_cast<In>(highest ^ (std::is_signed_v<In> ? 0x80 : 0));
}

// The terms of the first count - count % 8 elements. Lanes hold at most 2^19 a time: 4,000 of them fit.
template <typename In>
std::int64_t sum_terms(const In* row, std::int64_t count, std::int32_t maximum, const SoftmaxByteTable& table) {
  constexpr std::int64_t kAtOnce = 8 * 2048;
  const __m256i highest = _mm256_set1_epi32(maximum);
  std::int64_t total = 0;
  for (std::int64_t begin = 0; begin + 8 <= count; begin += kAtOnce) {
    const std::int64_t end = std::min(begin + kAtOnce, count - count % 8);
    __m256i sums = _mm256_setzero_si256();
    for (std::int64_t i = begin; i < end; i += 8) {
      sums = _mm256_add_epi32(sums, _mm256_i32gather_epi32(table.term.data(), depths_below(row + i, highest), 4));
    }
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
    for (const std::int32_t lane : lanes) total += lane;
  }
  return total;
}

// round(round(exponential * reciprocal / 2^31) / 2^exponent), of the first count - count % 8 elements.
template <typename In, typename Out>
void scale_terms(const In* row, std::int64_t count, std::int32_t maximum, const SoftmaxByteTable& table,
                 std::int32_t reciprocal, int exponent, Out* out) {
  const __m256i highest = _mm256_set1_epi32(maximum), factor = _mm256_set1_epi32(reciprocal);
  const __m256i half = _mm256_set1_epi64x(std::int64_t{1} << 30);
  const __m256i last_half = _mm256_set1_epi32(exponent > 0 ? 1 << (exponent - 1) : 0);
  const __m128i shift = _mm_cvtsi32_si128(exponent);
  const __m256i lowest = _mm256_set1_epi32(std::numeric_limits<Out>::min());
  const __m256i limit = _mm256_set1_epi32(std::numeric_limits<Out>::max());
  for (std::int64_t i = 0; i + 8 <= count; i += 8) {
    const __m256i e = _mm256_i32gather_epi32(table.exponential.data(), depths_below(row + i, highest), 4);
    const __m256i even = _mm256_srli_epi64(_mm256_add_epi64(_mm256_mul_epu32(e, factor), half), 31);
    const __m256i odd =
        _mm256_srli_epi64(_mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(e, 32), factor), half), 31);
    const __m256i products = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    const __m256i divided = _mm256_srl_epi32(_mm256_add_epi32(products, last_half), shift);
    const __m256i results = _mm256_min_epi32(_mm256_add_epi32(divided, lowest), limit);
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), results);
    for (int k = 0; k < 8; ++k) out[i + k] = static_cast<Out>(lanes[k]);
  }
}

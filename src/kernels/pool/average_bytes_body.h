// SPDX-License-Identifier: Apache-2.0
// Averages of bytes for AVX2, 16 channels at a time. No include guard: it is included once per target, see
// simd/targets.h.

// Eight sums divided by `count`, halves away from zero. Sums are below 2^23 and averages below 2^9, so that the
// quotient of floats is never rounded up to a whole number for a count below 2^14.
[[gnu::always_inline]] inline __m256i averages(__m256i sums, __m256 count, __m256i half) {
  const __m256i away = _mm256_add_epi32(sums, _mm256_sign_epi32(half, sums));
  return _mm256_cvttps_epi32(_mm256_div_ps(_mm256_cvtepi32_ps(away), count));
}

template <bool kSigned>
[[gnu::always_inline]] inline __m256i widened(const void* from) {
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
  return kSigned ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes);
}

// T: int8_t or uint8_t. Fewer than 2^14 elements in a window.
template <typename T>
void average_of_window(const PoolGeometry& g, const Window& window, const T* input, PoolLimits<T> limits, T* output) {
  constexpr std::int64_t kLanes = 16, kMostAtOnce = 120;  // what 16 bits hold the sum of
  const T* first = input + window.input_offset;
  T* to = output + window.output_offset;
  const __m256 count = _mm256_set1_ps(static_cast<float>(window.count()));
  const __m256i half = _mm256_set1_epi32(static_cast<std::int32_t>(window.count() / 2));
  const __m128i low = _mm_set1_epi8(static_cast<char>(limits.low)),
                high = _mm_set1_epi8(static_cast<char>(limits.high));
  for_each_vector<kLanes>(window.channels, [&](std::int64_t c) {
    __m256i first_sums = _mm256_setzero_si256(), last_sums = first_sums;  // of 8 channels each
    for (std::int64_t y = 0; y < window.rows; ++y) {
      const T* pixel = first + y * g.input_width * g.channels + c;
      for (std::int64_t left = window.columns; left > 0; left -= kMostAtOnce) {
        __m256i sums = _mm256_setzero_si256();
        for (std::int64_t x = std::min(left, kMostAtOnce); x > 0; --x, pixel += g.channels) {
          sums = _mm256_add_epi16(sums, widened<std::is_signed_v<T>>(pixel));
        }
        first_sums = _mm256_add_epi32(first_sums, _mm256_cvtepi16_epi32(_mm256_castsi256_si128(sums)));
        last_sums = _mm256_add_epi32(last_sums, _mm256_cvtepi16_epi32(_mm256_extracti128_si256(sums, 1)));
      }
    }
    const __m256i words = _mm256_permute4x64_epi64(
        _mm256_packs_epi32(averages(first_sums, count, half), averages(last_sums, count, half)), 0xD8);
    const __m128i lower = _mm256_castsi256_si128(words), upper = _mm256_extracti128_si256(words, 1);
    const __m128i results = std::is_signed_v<T> ? _mm_min_epi8(_mm_max_epi8(_mm_packs_epi16(lower, upper), low), high)
                                                : _mm_min_epu8(_mm_max_epu8(_mm_packus_epi16(lower, upper), low), high);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + c), results);
  });
}

// SPDX-License-Identifier: Apache-2.0
// elementwise/quantize.h for one target, 8 numbers at a time. Rounding: truncate, and go on by 1 where the rest is a
// half or more; both are exact below 2^23, and above every float is an integer. No include guard: it is included once
// per target, see simd/targets.h.

template <typename T>
std::int64_t quantize_vectors(const float* in, std::int64_t count, float scale, std::int32_t zero_point, T* out) {
  using Floats [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
  using Ints [[gnu::vector_size(32)]] = std::int32_t;
  using Words [[gnu::vector_size(32)]] = std::uint32_t;
  using Results [[maybe_unused, gnu::vector_size(8 * sizeof(T)), gnu::aligned(1), gnu::may_alias]] = T;
  constexpr std::int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const Ints low = Ints{} + kLow, high = Ints{} + kHigh, one = Ints{} + 1;
  const Words offset = Words{} + static_cast<std::uint32_t>(zero_point);
  std::int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const Floats quotient = *reinterpret_cast<const Floats*>(in + i) / scale;
    const Ints fits = (quotient > -2147483648.0f) & (quotient < 2147483648.0f);
    const Floats safe = fits ? quotient : Floats{};
    const Ints whole = __builtin_convertvector(safe, Ints);
    const Floats rest = safe - __builtin_convertvector(whole, Floats);
    const Ints up = (rest >= 0.5f) & one, down = (rest <= -0.5f) & one;
    const Ints rounded = fits ? whole + up - down : Ints{} + std::numeric_limits<std::int32_t>::min();
    const Ints moved = (Ints)((Words)rounded + offset);
    const Ints raised = moved < low ? low : moved;
    const Ints limited = raised > high ? high : raised;
#if REEF_AVX2
    // gcc takes conversions to fewer bits apart, number by number.
    const __m128i words =
        _mm_packs_epi32(_mm256_castsi256_si128((__m256i)limited), _mm256_extracti128_si256((__m256i)limited, 1));
    if constexpr (sizeof(T) == 2) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), words);
    } else {
      const __m128i bytes = std::is_signed_v<T> ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(out + i), bytes);
    }
#else
    *reinterpret_cast<Results*>(out + i) = __builtin_convertvector(limited, Results);
#endif
  }
  return i;
}

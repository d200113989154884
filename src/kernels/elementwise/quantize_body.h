// SPDX-License-Identifier: Apache-2.0
// elementwise/quantize.h for one target, REEF_LANES numbers at a time. Rounding: truncate, and go on by 1 where the
// rest is a half or more; both are exact below 2^23, and above every float is an integer.
//
// Divisions take longer than all else together, so that numbers are multiplied by the inverse of the scale first, if it
// is a normal number. The product differs from the quotient by less than 2^-22 of itself (three roundings of 2^-24 at
// most), so that both are rounded to the same integer unless the product is that close to a half; numbers that are
// closer than twice that, and large ones, are divided. (Whether halves go to even numbers or away from zero does not
// matter for the others.) No include guard: it is included once per target, see
// simd/targets.h.

using Floats [[gnu::vector_size(REEF_LANES * 4), gnu::aligned(4), gnu::may_alias]] = float;
using Ints [[gnu::vector_size(REEF_LANES * 4)]] = std::int32_t;
using Words [[gnu::vector_size(REEF_LANES * 4)]] = std::uint32_t;

// Rounded quotients; beyond 32 bits and NaN: the lowest number.
[[gnu::always_inline]] inline void round_quotients(const Floats& quotient, Ints& rounded) {
  const Ints one = Ints{} + 1;
  const Ints fits = (quotient > -2147483648.0f) & (quotient < 2147483648.0f);
  const Floats safe = fits ? quotient : Floats{};
  const Ints whole = __builtin_convertvector(safe, Ints);
  const Floats rest = safe - __builtin_convertvector(whole, Floats);
  const Ints up = (rest >= 0.5f) & one, down = (rest <= -0.5f) & one;
  rounded = fits ? whole + up - down : Ints{} + std::numeric_limits<std::int32_t>::min();
}

#if REEF_AVX2
// Products with the inverse, rounded as quotients are; false where some are too close to a half. Large numbers and NaN
// count as close: the bound grows with them.
[[gnu::always_inline]] inline bool round_products(const Floats& product, Ints& rounded) {
  constexpr float kClose = 0x1p-21f;
#if REEF_LANES == 16
  const __m512i whole = _mm512_maskz_cvtps_epi32(0xFFFF, product);
  const __m512 rest = _mm512_abs_ps(product - _mm512_maskz_cvtepi32_ps(0xFFFF, whole));
  const __m512 reach = _mm512_fmadd_ps(_mm512_abs_ps(product), _mm512_set1_ps(kClose), rest);
  rounded = (Ints)whole;
  return _mm512_cmp_ps_mask(reach, _mm512_set1_ps(0.5f), _CMP_NLT_UQ) == 0;
#else
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256i whole = _mm256_cvtps_epi32(product);
  const __m256 rest = _mm256_andnot_ps(sign, product - _mm256_cvtepi32_ps(whole));
  const __m256 reach = _mm256_fmadd_ps(_mm256_andnot_ps(sign, product), _mm256_set1_ps(kClose), rest);
  rounded = (Ints)whole;
  return _mm256_movemask_ps(_mm256_cmp_ps(reach, _mm256_set1_ps(0.5f), _CMP_NLT_UQ)) == 0;
#endif
}
#endif

template <typename T>
[[gnu::always_inline]] inline void store_limited(const Ints& limited, T* out) {
#if REEF_LANES == 16
  if constexpr (sizeof(T) == 2) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_maskz_cvtepi32_epi16(0xFFFF, (__m512i)limited));
  } else {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_maskz_cvtepi32_epi8(0xFFFF, (__m512i)limited));
  }
#elif REEF_AVX2
  // gcc takes conversions to fewer bits apart, number by number.
  const __m128i words =
      _mm_packs_epi32(_mm256_castsi256_si128((__m256i)limited), _mm256_extracti128_si256((__m256i)limited, 1));
  if constexpr (sizeof(T) == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), words);
  } else {
    const __m128i bytes = std::is_signed_v<T> ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), bytes);
  }
#else
  using Results [[gnu::vector_size(REEF_LANES * sizeof(T)), gnu::aligned(1), gnu::may_alias]] = T;
  *reinterpret_cast<Results*>(out) = __builtin_convertvector(limited, Results);
#endif
}

template <typename T>
std::int64_t quantize_vectors(const float* in, std::int64_t count, float scale, std::int32_t zero_point, T* out) {
  constexpr std::int32_t kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  const Ints low = Ints{} + kLow, high = Ints{} + kHigh;
  const Words offset = Words{} + static_cast<std::uint32_t>(zero_point);
  [[maybe_unused]] const float inverse = 1.0f / scale;
  [[maybe_unused]] const bool has_inverse = std::isnormal(inverse);
  std::int64_t i = 0;
  for (; i + REEF_LANES <= count; i += REEF_LANES) {
    const Floats x = *reinterpret_cast<const Floats*>(in + i);
    Ints rounded;
#if REEF_AVX2
    if (!has_inverse || !round_products(x * inverse, rounded)) [[unlikely]]
      round_quotients(x / scale, rounded);
#else
    round_quotients(x / scale, rounded);
#endif
    const Ints moved = (Ints)((Words)rounded + offset);
    const Ints raised = moved < low ? low : moved;
    store_limited<T>(raised > high ? high : raised, out + i);
  }
  return i;
}

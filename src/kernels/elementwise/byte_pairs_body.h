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

// 32 results as bytes. Saturating to 16 and to 8 bits on the way changes nothing: limits lie within 8 bits.
[[gnu::always_inline]] inline __m256i to_bytes(const BytePairs::Real& real, const __m256i* results, __m128i bits) {
  __m256i words[2];
  for (int i = 0; i < 2; ++i) {
    const __m256i low = _mm256_sra_epi32(results[2 * i], bits), high = _mm256_sra_epi32(results[2 * i + 1], bits);
    const __m256i zero_point = _mm256_set1_epi16(static_cast<std::int16_t>(real.zero_point));
    words[i] = _mm256_adds_epi16(_mm256_packs_epi32(low, high), zero_point);
  }
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // packing works on halves
  const __m256i lowest = _mm256_set1_epi8(static_cast<char>(real.lowest));
  const __m256i highest = _mm256_set1_epi8(static_cast<char>(real.highest));
  if (real.is_signed) {
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words[0], words[1]), order);
    return _mm256_min_epi8(_mm256_max_epi8(bytes, lowest), highest);
  }
  const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(words[0], words[1]), order);
  return _mm256_min_epu8(_mm256_max_epu8(bytes, lowest), highest);
}

void pairs_row(const BytePairs& pairs, const std::uint8_t* a, std::int64_t a_step, const std::uint8_t* b,
               std::int64_t b_step, std::uint8_t* out, std::int64_t count) {
  const BytePairs::Real real = pairs.real();
  const __m256i mask = _mm256_set1_epi32((1 << real.bits) - 1), sure = _mm256_set1_epi32(2 * real.slack);
  const __m128i bits = _mm_cvtsi32_si128(real.bits);
  std::int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const std::uint8_t* at_a = a + i * a_step;
    const std::uint8_t* at_b = b + i * b_step;
    __m256i scaled[4];
    __m256i least = mask;
    for (int k = 0; k < 4; ++k) {
      scaled[k] = combine(real, load_operand(real, at_a + 8 * k * a_step, a_step, real.zero_a),
                          load_operand(real, at_b + 8 * k * b_step, b_step, real.zero_b));
      least = _mm256_min_epi32(least, _mm256_and_si256(scaled[k], mask));
    }
    __m256i bytes = to_bytes(real, scaled, bits);
    if (_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(sure, least))) != 0) [[unlikely]] {
      // Some result is too close to a border for floats to be sure.
      alignas(32) std::uint8_t exact[32];
      _mm256_store_si256(reinterpret_cast<__m256i*>(exact), bytes);
      for (int k = 0; k < 4; ++k) {
        const __m256i unsure = _mm256_cmpgt_epi32(sure, _mm256_and_si256(scaled[k], mask));
        const int lanes = _mm256_movemask_ps(_mm256_castsi256_ps(unsure));
        for (int lane = 0; lane < 8; ++lane) {
          const int at = 8 * k + lane;
          if (lanes >> lane & 1) exact[at] = pairs.exact(at_a[at * a_step], at_b[at * b_step]);
        }
      }
      bytes = _mm256_load_si256(reinterpret_cast<const __m256i*>(exact));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), bytes);
  }
  if (i == count) return;
  // The rest, filled up to a vector.
  std::uint8_t rest_a[32] = {}, rest_b[32] = {}, rest_out[32];
  const auto rest = static_cast<std::size_t>(count - i);
  std::memcpy(rest_a, a + i * a_step, a_step == 0 ? 1 : rest);
  std::memcpy(rest_b, b + i * b_step, b_step == 0 ? 1 : rest);
  pairs_row(pairs, rest_a, a_step, rest_b, b_step, rest_out, 32);
  std::memcpy(out + i, rest_out, rest);
}

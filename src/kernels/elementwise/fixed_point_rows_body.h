// SPDX-License-Identifier: Apache-2.0
// elementwise/fixed_point_rows.h for AVX2. No include guard: it is included once per target, see simd/targets.h.

// numeric::multiply of eight numbers; its shift is at most 30.
struct VectorMultiplier {
  __m256i mantissa, mask, half_mask, half;
  __m128i left, right;

  explicit VectorMultiplier(numeric::Multiplier factor) {
    const int to_right = factor.shift > 0 ? 0 : -factor.shift;
    const auto ones = static_cast<std::int32_t>((std::int64_t{1} << to_right) - 1);
    mantissa = _mm256_set1_epi32(factor.mantissa);
    mask = _mm256_set1_epi32(ones);
    half_mask = _mm256_set1_epi32(ones >> 1);
    half = _mm256_set1_epi64x(std::int64_t{1} << 30);
    left = _mm_cvtsi32_si128(factor.shift > 0 ? factor.shift : 0);
    right = _mm_cvtsi32_si128(to_right);
  }

  [[gnu::always_inline]] __m256i operator()(__m256i numbers) const {
    const __m256i x = _mm256_sll_epi32(numbers, left);
    const __m256i even = _mm256_add_epi64(_mm256_mul_epi32(x, mantissa), half);
    const __m256i odd = _mm256_add_epi64(_mm256_mul_epi32(_mm256_srli_epi64(x, 32), mantissa), half);
    const __m256i high = _mm256_blend_epi32(_mm256_srli_epi64(even, 31), _mm256_slli_epi64(odd, 1), 0xAA);
    const __m256i remainder = _mm256_and_si256(high, mask);
    const __m256i threshold = _mm256_add_epi32(half_mask, _mm256_srli_epi32(high, 31));
    return _mm256_sub_epi32(_mm256_sra_epi32(high, right), _mm256_cmpgt_epi32(remainder, threshold));
  }
};

// Eight results within a byte's limits, to bytes.
[[gnu::always_inline]] inline void store_bytes(const ByteRequantize& q, __m256i scaled, bool is_signed, void* out) {
  const __m256i offset = _mm256_add_epi32(scaled, _mm256_set1_epi32(q.zero_point));
  const __m256i limited =
      _mm256_min_epi32(_mm256_max_epi32(offset, _mm256_set1_epi32(q.lowest)), _mm256_set1_epi32(q.highest));
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(limited), _mm256_extracti128_si256(limited, 1));
  _mm_storel_epi64(static_cast<__m128i*>(out),
                   is_signed ? _mm_packs_epi16(words, words) : _mm_packus_epi16(words, words));
}

// Elements [0, count - count % 8).
template <typename T>
void requantize_row(const ByteRequantize& q, const std::int64_t* sums, std::int64_t count, T* out) {
  const VectorMultiplier multiply(q.factor);
  for (std::int64_t i = 0; i + 8 <= count; i += 8) {
    const __m256 low = _mm256_loadu_ps(reinterpret_cast<const float*>(sums + i));
    const __m256 high = _mm256_loadu_ps(reinterpret_cast<const float*>(sums + i + 4));
    const __m256i mixed = _mm256_castps_si256(_mm256_shuffle_ps(low, high, 0x88));
    store_bytes(q, multiply(_mm256_permute4x64_epi64(mixed, 0xD8)), std::is_signed_v<T>, out + i);
  }
}

// One operand of eight elements, brought to the common scale.
struct VectorRescale {
  VectorMultiplier multiply;
  __m256i zero_point;
  __m128i left_shift;

  explicit VectorRescale(const Rescale& rescale)
      : multiply(rescale.factor),
        zero_point(_mm256_set1_epi32(rescale.zero_point)),
        left_shift(_mm_cvtsi32_si128(rescale.left_shift)) {}
  [[gnu::always_inline]] __m256i operator()(const std::int8_t* from) const {
    const __m256i numbers = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
    return multiply(_mm256_sll_epi32(_mm256_sub_epi32(numbers, zero_point), left_shift));
  }
};

// Elements [0, count - count % 8).
void squared_differences(const SquaredDifference& s, const std::int8_t* x, std::int64_t x_step, const std::int8_t* y,
                         std::int64_t y_step, std::int8_t* out, std::int64_t count) {
  const VectorMultiplier multiply(s.result.factor);
  const VectorRescale rescale_x(s.x_scaling), rescale_y(s.y_scaling);
  const __m256i single_x = _mm256_set1_epi32(s.x_scaling(*x)), single_y = _mm256_set1_epi32(s.y_scaling(*y));
  for (std::int64_t i = 0; i + 8 <= count; i += 8) {
    const __m256i difference =
        _mm256_sub_epi32(x_step == 0 ? single_x : rescale_x(x + i), y_step == 0 ? single_y : rescale_y(y + i));
    store_bytes(s.result, multiply(_mm256_mullo_epi32(difference, difference)), true, out + i);
  }
}

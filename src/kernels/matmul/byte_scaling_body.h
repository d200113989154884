// SPDX-License-Identifier: Apache-2.0
// matmul/byte_scaling.h on vectors of 32 bytes, for AVX2 and AVX-512. No include guard: it is included once per target,
// see simd/targets.h.

constexpr int kLanes = 8;

struct ScaleVectors {
  __m256 factor, above, below;
};
[[gnu::always_inline]] inline ScaleVectors load_scale(const ByteScaling& scaling, std::int64_t slot) {
  return {_mm256_loadu_ps(scaling.factor.data() + slot), _mm256_loadu_ps(scaling.above.data() + slot),
          _mm256_loadu_ps(scaling.below.data() + slot)};
}

// Sums times factor plus zero point and one half, as fixed-point numbers of kPlaces binary places.
[[gnu::always_inline]] inline __m256i scale(__m256i sums, const ScaleVectors& by) {
  const __m256 sum = _mm256_cvtepi32_ps(sums);
  const __m256 scaled = _mm256_fmadd_ps(sum, by.factor, _mm256_blendv_ps(by.above, by.below, sum));
  return _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(kLargestScaled)));
}

// Bit i: lane i of these sums, in slots [slot, slot + 8), needs the reference's function.
inline unsigned unsure_lanes(const ByteScaling& scaling, __m256i sums, std::int64_t slot) {
  const __m256i places = _mm256_and_si256(scale(sums, load_scale(scaling, slot)), _mm256_set1_epi32(0xffff));
  const __m256i unsure = _mm256_cmpgt_epi32(_mm256_set1_epi32(kSurePlaces), places);
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(unsure)));
}

// Whether no result needs it, given the least binary places of all.
[[gnu::always_inline]] inline bool all_sure(__m256i least) {
  const __m256i sure = _mm256_cmpgt_epi32(least, _mm256_set1_epi32(kSurePlaces - 1));
  return _mm256_movemask_epi8(sure) == -1;
}

// What rows of results need again and again; copies, because stores of bytes might change anything that is pointed to.
struct ByteLimits {
  __m256i lowest, highest, mask;
};
[[gnu::always_inline]] inline ByteLimits load_limits(const ByteScaling& scaling) {
  return {_mm256_set1_epi8(static_cast<char>(scaling.exact->lowest)),
          _mm256_set1_epi8(static_cast<char>(scaling.exact->highest)), _mm256_set1_epi32(0xffff)};
}

// Results as 16-bit numbers to bytes within the limits; order as _mm256_packs_epi16 leaves it.
template <bool kSigned>
[[gnu::always_inline]] inline __m256i limited_bytes(const ByteLimits& limits, __m256i low, __m256i high) {
  if constexpr (kSigned) {
    return _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(low, high), limits.lowest), limits.highest);
  } else {
    return _mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(low, high), limits.lowest), limits.highest);
  }
}

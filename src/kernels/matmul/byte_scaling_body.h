// SPDX-License-Identifier: Apache-2.0
// matmul/byte_scaling.h on vectors of 32 bytes, for AVX2. No include guard: it is included once per target, see
// simd/targets.h.

#include "kernels/simd/for_constants_body.h"

constexpr int kLanes = 8;

struct ScaleVectors {
  __m256 factor, above, below;
};
[[gnu::always_inline]] inline ScaleVectors load_scale(const ByteScaling& scaling, std::int64_t slot) {
  return {_mm256_loadu_ps(scaling.factor.data() + slot), _mm256_loadu_ps(scaling.above.data() + slot),
          _mm256_loadu_ps(scaling.below.data() + slot)};
}

// Sums times factor plus zero point and one half, as fixed-point numbers of kPlaces binary places. kPlain: see
// ByteScaling::is_plain.
template <bool kPlain>
[[gnu::always_inline]] inline __m256i scale(__m256i sums, const ScaleVectors& by) {
  const __m256 sum = _mm256_cvtepi32_ps(sums);
  if constexpr (kPlain) return _mm256_cvtps_epi32(_mm256_fmadd_ps(sum, by.factor, by.above));
  const __m256 scaled = _mm256_fmadd_ps(sum, by.factor, _mm256_blendv_ps(by.above, by.below, sum));
  return _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(kLargestScaled)));
}

// Two vectors of scaled sums as 16-bit numbers, taken in turn: results, and binary places. A shift and a blend each;
// packing would take three instructions and leave another order.
[[gnu::always_inline]] inline __m256i results_in_turn(__m256i a, __m256i b) {
  return _mm256_blend_epi16(_mm256_srli_epi32(a, kPlaces), b, 0xaa);
}
[[gnu::always_inline]] inline __m256i places_in_turn(__m256i a, __m256i b) {
  return _mm256_blend_epi16(a, _mm256_slli_epi32(b, kPlaces), 0xaa);
}

// Binary places of kCount vectors of results: kept, so that those in doubt can be found.
template <int kCount>
struct Places {
  alignas(32) std::uint16_t values[kCount][2 * kLanes];
  __m256i least;

  [[gnu::always_inline]] void set(int index, __m256i places) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(values[index]), places);
    least = index == 0 ? places : _mm256_min_epu16(least, places);
  }
  [[gnu::always_inline]] bool all_sure() const {
    const __m256i unsure = _mm256_cmpeq_epi16(_mm256_min_epu16(least, _mm256_set1_epi16(kSurePlaces - 1)), least);
    return _mm256_testz_si256(unsure, unsure) != 0;
  }
};

// What rows of results need again and again; copies, because stores of bytes might change anything that is pointed to.
struct ByteLimits {
  __m256i lowest, highest;
};
[[gnu::always_inline]] inline ByteLimits load_limits(const ByteScaling& scaling) {
  return {_mm256_set1_epi8(static_cast<char>(scaling.exact->lowest)),
          _mm256_set1_epi8(static_cast<char>(scaling.exact->highest))};
}

// Results as 16-bit numbers to bytes within the limits; order as _mm256_packs_epi16 leaves it.
template <bool kSigned, bool kPlain>
[[gnu::always_inline]] inline __m256i limited_bytes(const ByteLimits& limits, __m256i low, __m256i high) {
  const __m256i packed = kSigned ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  if constexpr (kPlain) return packed;
  if constexpr (kSigned) return _mm256_min_epi8(_mm256_max_epi8(packed, limits.lowest), limits.highest);
  return _mm256_min_epu8(_mm256_max_epu8(packed, limits.lowest), limits.highest);
}

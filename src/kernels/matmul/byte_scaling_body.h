// SPDX-License-Identifier: Apache-2.0
// matmul/byte_scaling.h on vectors of 16 or 32 bytes, for SSE4 and AVX2. No include guard: it is included once per
// target, see simd/targets.h.

#include "kernels/simd/for_constants_body.h"

#include "kernels/simd/vectors_body.h"

struct ScaleVectors {
  Floats factor, above, below;
};
[[gnu::always_inline]] inline ScaleVectors load_scale(const ByteScaling& scaling, std::int64_t slot) {
  return {REEF_MM(loadu_ps)(scaling.factor.data() + slot), REEF_MM(loadu_ps)(scaling.above.data() + slot),
          REEF_MM(loadu_ps)(scaling.below.data() + slot)};
}

// Sums times factor plus zero point and one half, as fixed-point numbers of kPlaces binary places. kPlain: see
// ByteScaling::is_plain.
template <bool kPlain>
[[gnu::always_inline]] inline Ints scale(Ints sums, const ScaleVectors& by) {
  const Floats sum = REEF_MM(cvtepi32_ps)(sums);
  if constexpr (kPlain) return REEF_MM(cvtps_epi32)(multiply_add(sum, by.factor, by.above));
  const Floats scaled = multiply_add(sum, by.factor, REEF_MM(blendv_ps)(by.above, by.below, sum));
  return REEF_MM(cvtps_epi32)(REEF_MM(min_ps)(scaled, REEF_MM(set1_ps)(kLargestScaled)));
}

// Two vectors of scaled sums as 16-bit numbers, taken in turn: results, and binary places. A shift and a blend each;
// packing would take three instructions and leave another order.
[[gnu::always_inline]] inline Ints results_in_turn(Ints a, Ints b) {
  return REEF_MM(blend_epi16)(REEF_MM(srli_epi32)(a, kPlaces), b, 0xaa);
}
[[gnu::always_inline]] inline Ints places_in_turn(Ints a, Ints b) {
  return REEF_MM(blend_epi16)(a, REEF_MM(slli_epi32)(b, kPlaces), 0xaa);
}

// Bytes that come from such 16-bit numbers: in each eight, those of `a` before those of `b`.
[[gnu::always_inline]] inline Ints turns_undone(Ints bytes) {
  const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
#if REEF_VECTOR_BYTES == 32
  return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
#else
  return _mm_shuffle_epi8(bytes, order);
#endif
}

// Binary places of kCount vectors of results: kept, so that those in doubt can be found.
template <int kCount>
struct Places {
  alignas(32) std::uint16_t values[kCount][2 * kLanes];
  Ints least;

  [[gnu::always_inline]] void set(int index, Ints places) {
    store_ints(values[index], places);
    least = index == 0 ? places : REEF_MM(min_epu16)(least, places);
  }
  [[gnu::always_inline]] bool all_sure() const {
    const Ints unsure = REEF_MM(cmpeq_epi16)(REEF_MM(min_epu16)(least, REEF_MM(set1_epi16)(kSurePlaces - 1)), least);
    return is_zero(unsure);
  }
};

// Constants for all rows of results. They are copies, because stores of bytes might change anything that is pointed to.
struct ByteLimits {
  Ints lowest, highest;
};
[[gnu::always_inline]] inline ByteLimits load_limits(const ByteScaling& scaling) {
  return {REEF_MM(set1_epi8)(static_cast<char>(scaling.exact->lowest)),
          REEF_MM(set1_epi8)(static_cast<char>(scaling.exact->highest))};
}

// Results as 16-bit numbers to bytes within the limits; order as packing leaves it.
template <bool kSigned, bool kPlain>
[[gnu::always_inline]] inline Ints limited_bytes(const ByteLimits& limits, Ints low, Ints high) {
  const Ints packed = kSigned ? REEF_MM(packs_epi16)(low, high) : REEF_MM(packus_epi16)(low, high);
  if constexpr (kPlain) return packed;
  if constexpr (kSigned) return REEF_MM(min_epi8)(REEF_MM(max_epi8)(packed, limits.lowest), limits.highest);
  return REEF_MM(min_epu8)(REEF_MM(max_epu8)(packed, limits.lowest), limits.highest);
}

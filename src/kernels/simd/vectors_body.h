// SPDX-License-Identifier: Apache-2.0
// Intel's vectors of either length, so that one body serves SSE4 (REEF_VECTOR_BYTES is 16) and AVX2 (32): REEF_MM(f) is
// _mm_f or _mm256_f. The longer ones' shuffles, packing above all, work on halves of 16 bytes each, so that bodies have
// a few lines for each length where results are put in order. No include guard: it is included once per target, see
// simd/targets.h.

#undef REEF_MM
#if REEF_VECTOR_BYTES == 32
#define REEF_MM(function) _mm256_##function
using Ints = __m256i;
using Floats = __m256;
#else
#define REEF_MM(function) _mm_##function
using Ints = __m128i;
using Floats = __m128;
#endif
constexpr int kVectorBytes = REEF_VECTOR_BYTES;
constexpr int kLanes = kVectorBytes / 4;  // numbers of 32 bits

[[gnu::always_inline]] inline Ints load_ints(const void* from) {
#if REEF_VECTOR_BYTES == 32
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
#else
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
#endif
}
[[gnu::always_inline]] inline void store_ints(void* to, Ints values) {
#if REEF_VECTOR_BYTES == 32
  _mm256_storeu_si256(static_cast<__m256i*>(to), values);
#else
  _mm_storeu_si128(static_cast<__m128i*>(to), values);
#endif
}
[[gnu::always_inline]] inline Ints zero_ints() {
#if REEF_VECTOR_BYTES == 32
  return _mm256_setzero_si256();
#else
  return _mm_setzero_si128();
#endif
}
[[gnu::always_inline]] inline bool is_zero(Ints values) {
#if REEF_VECTOR_BYTES == 32
  return _mm256_testz_si256(values, values) != 0;
#else
  return _mm_testz_si128(values, values) != 0;
#endif
}
// Half of a vector; of 16 bytes the lower 8 are meant.
[[gnu::always_inline]] inline __m128i first_half(Ints values) {
#if REEF_VECTOR_BYTES == 32
  return _mm256_castsi256_si128(values);
#else
  return values;
#endif
}
[[gnu::always_inline]] inline __m128i second_half(Ints values) {
#if REEF_VECTOR_BYTES == 32
  return _mm256_extracti128_si256(values, 1);
#else
  return _mm_unpackhi_epi64(values, values);
#endif
}
[[gnu::always_inline]] inline void store_half(void* to, __m128i half) {
#if REEF_VECTOR_BYTES == 32
  _mm_storeu_si128(static_cast<__m128i*>(to), half);
#else
  _mm_storel_epi64(static_cast<__m128i*>(to), half);
#endif
}
// Puts the result of packing, which is in order only within 16 bytes, in order: the quarters 0, 2, 1, 3 of 32 bytes.
[[gnu::always_inline]] inline Ints packed_in_order(Ints values) {
#if REEF_VECTOR_BYTES == 32
  return _mm256_permute4x64_epi64(values, 0xd8);
#else
  return values;
#endif
}
// kVectorBytes / 2 bytes as 16-bit numbers.
template <bool kSigned>
[[gnu::always_inline]] inline Ints widened_bytes(const void* from) {
#if REEF_VECTOR_BYTES == 32
  const __m128i bytes = _mm_loadu_si128(static_cast<const __m128i*>(from));
#else
  const __m128i bytes = _mm_loadl_epi64(static_cast<const __m128i*>(from));
#endif
  return kSigned ? REEF_MM(cvtepi8_epi16)(bytes) : REEF_MM(cvtepu8_epi16)(bytes);
}
// kLanes bytes as numbers of 32 bits.
template <bool kSigned>
[[gnu::always_inline]] inline Ints bytes_as_ints(const void* from) {
  std::int64_t all = 0;
  std::memcpy(&all, from, kLanes);
  const __m128i bytes = _mm_cvtsi64_si128(all);
  return kSigned ? REEF_MM(cvtepi8_epi32)(bytes) : REEF_MM(cvtepu8_epi32)(bytes);
}
// a * b + c, rounded once with 32 bytes and twice with 16.
[[gnu::always_inline]] inline Floats multiply_add(Floats a, Floats b, Floats c) {
#if REEF_VECTOR_BYTES == 32
  return _mm256_fmadd_ps(a, b, c);
#else
  return _mm_add_ps(_mm_mul_ps(a, b), c);
#endif
}

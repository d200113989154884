// SPDX-License-Identifier: Apache-2.0
// Vectors of REEF_LANES floats, wherever in memory, and how a product is added to a sum: with two roundings, or with
// one if REEF_FUSED. No include guard: it is included once per target, see simd/targets.h.

using Vec [[gnu::vector_size(REEF_LANES * 4), gnu::aligned(4), gnu::may_alias]] = float;

[[gnu::always_inline]] inline void add_product(Vec& sum, Vec a, Vec b) {
#if !REEF_FUSED
  sum += a * b;
#elif defined(__aarch64__)
  sum = Vec(vfmaq_f32(float32x4_t(sum), float32x4_t(a), float32x4_t(b)));
#elif REEF_LANES == 16
  sum = Vec(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(sum)));
#else
  sum = Vec(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sum)));
#endif
}

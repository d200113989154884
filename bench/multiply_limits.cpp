// SPDX-License-Identifier: Apache-2.0
#include "bench/multiply_limits.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "kernels/simd/targets.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reef::bench {
namespace {

constexpr std::int64_t kSteps = 2'000'000;
constexpr int kChains = 12;  // independent sums: more than latency times throughput

template <typename Loop>
double best_rate(double products, const Loop& loop) {
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    const auto start = std::chrono::steady_clock::now();
    loop();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return products / best / 1e9;
}

// Vectors of 16 bytes, as the compiler makes them.
void plain_floats() {
  using Vec [[gnu::vector_size(16)]] = float;
  Vec sums[8] = {}, x = {1, 2, 3, 4}, y = {4, 3, 2, 1};
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) sums[k] += x * y;
    asm volatile("" : "+m"(x), "+m"(y));
  }
  for (Vec& sum : sums) asm volatile("" ::"m"(sum));
}

#if defined(__x86_64__)
__attribute__((target("avx2,avx512f,avx512vl,avx512vnni"))) void vnni_bytes() {
  __m256i sums[kChains];
  for (__m256i& sum : sums) asm volatile("vpxor %0, %0, %0" : "=x"(sum));  // so that no two look alike
  const __m256i x = _mm256_set1_epi8(1);
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm256_dpbusd_epi32(sums[k], x, x);
    asm volatile("" ::"x"(x));
  }
  for (__m256i& sum : sums) asm volatile("" ::"m"(sum));
}

// Pairs of products in sums of 16 bits, as kernels/matmul/byte_split.h has them at best. All in assembler: gcc 12 would
// keep the sums in memory.
#define REEF_12_CHAINS(chain)                                                                                        \
  asm volatile(chain("0", "12") chain("1", "13") chain("2", "12") chain("3", "13") chain("4", "12") chain("5", "13") \
                   chain("6", "12") chain("7", "13") chain("8", "12") chain("9", "13") chain("10", "12")             \
                       chain("11", "13")                                                                             \
               :                                                                                                     \
               :                                                                                                     \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",   \
                 "xmm12", "xmm13")
static_assert(kChains == 12);

__attribute__((target("avx2"))) void pairs_of_bytes() {
  for (std::int64_t i = 0; i < kSteps; ++i) {
#define REEF_CHAIN(n, m)                 \
  "vpmaddubsw %%ymm14, %%ymm14, %%ymm" m \
  "\n\t"                                 \
  "vpaddw %%ymm" m ", %%ymm" n ", %%ymm" n "\n\t"
    REEF_12_CHAINS(REEF_CHAIN);
#undef REEF_CHAIN
  }
}

__attribute__((target("sse4.1"))) void short_pairs_of_bytes() {
  for (std::int64_t i = 0; i < kSteps; ++i) {
#define REEF_CHAIN(n, m)       \
  "movdqa %%xmm14, %%xmm" m    \
  "\n\t"                       \
  "pmaddubsw %%xmm14, %%xmm" m \
  "\n\t"                       \
  "paddw %%xmm" m ", %%xmm" n "\n\t"
    REEF_12_CHAINS(REEF_CHAIN);
#undef REEF_CHAIN
  }
}

// Four products at once, as AVX-512 with VNNI does, coded for CPUs without.
__attribute__((target("avx2"))) void avx_vnni_bytes() {
  for (std::int64_t i = 0; i < kSteps; ++i) {
#define REEF_CHAIN(n, m) "%{vex%} vpdpbusd %%ymm14, %%ymm14, %%ymm" n "\n\t"
    REEF_12_CHAINS(REEF_CHAIN);
#undef REEF_CHAIN
  }
}
#undef REEF_12_CHAINS

__attribute__((target("avx2"))) void avx_floats() {
  __m256 sums[kChains] = {};
  const __m256 x = _mm256_set1_ps(1.5f);
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) {
      __m256 product;
      asm volatile("vmulps %1, %1, %0" : "=x"(product) : "x"(x));
      sums[k] = _mm256_add_ps(sums[k], product);
    }
  }
  for (__m256& sum : sums) asm volatile("" ::"m"(sum));
}
#endif

}  // namespace

MultiplyLimits multiply_limits() {
  const kernels::SimdTarget target = kernels::active_target();
  const auto steps = static_cast<double>(kSteps);
#if defined(__x86_64__)
  if (target == kernels::SimdTarget::kAvx512) {
    return {best_rate(steps * kChains * 32, vnni_bytes), best_rate(steps * kChains * 8, avx_floats)};
  }
  if (target == kernels::SimdTarget::kAvxVnni) {
    return {best_rate(steps * kChains * 32, avx_vnni_bytes), best_rate(steps * kChains * 8, avx_floats)};
  }
  if (target == kernels::SimdTarget::kAvx2) {
    return {best_rate(steps * kChains * 32, pairs_of_bytes), best_rate(steps * kChains * 8, avx_floats)};
  }
  if (target == kernels::SimdTarget::kSse4) {
    return {best_rate(steps * kChains * 16, short_pairs_of_bytes), best_rate(steps * 8 * 4, plain_floats)};
  }
#endif
  (void)target;
  const double floats = best_rate(steps * 8 * 4, plain_floats);
  return {2 * floats, floats};  // 16-bit pairs in vectors of the same length
}

}  // namespace reef::bench

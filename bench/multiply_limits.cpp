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

__attribute__((target("avx2"))) void pairs_of_bytes() {
  __m256i sums[kChains] = {};
  const __m256i x = _mm256_set1_epi16(1);
  for (std::int64_t i = 0; i < kSteps; ++i) {
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) {
      __m256i product;
      asm volatile("vpmaddwd %1, %1, %0" : "=x"(product) : "x"(x));
      sums[k] = _mm256_add_epi32(sums[k], product);
    }
  }
  for (__m256i& sum : sums) asm volatile("" ::"m"(sum));
}

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
  if (target == kernels::SimdTarget::kAvx2) {
    return {best_rate(steps * kChains * 16, pairs_of_bytes), best_rate(steps * kChains * 8, avx_floats)};
  }
#endif
  (void)target;
  const double floats = best_rate(steps * 8 * 4, plain_floats);
  return {2 * floats, floats};  // 16-bit pairs in vectors of the same length
}

}  // namespace reef::bench

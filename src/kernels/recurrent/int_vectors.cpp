// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent/int_vectors.h"

#include <algorithm>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

namespace reef::kernels {
namespace {

#if defined(__x86_64__)
#include "kernels/simd/begin_avx2.h"
// Products of the first count - count % 16 numbers. A lane gets two products of at most 2^22 a time: 255 times fit.
std::int64_t products_by_16(const std::int16_t* a, const std::int8_t* b, std::int64_t count) {
  constexpr std::int64_t kRun = 16 * 128;
  std::int64_t total = 0;
  for (std::int64_t begin = 0; begin + 16 <= count; begin += kRun) {
    const std::int64_t end = std::min(begin + kRun, count - count % 16);
    __m256i sums = _mm256_setzero_si256();
    for (std::int64_t i = begin; i < end; i += 16) {
      const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + i));
      const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)));
      sums = _mm256_add_epi32(sums, _mm256_madd_epi16(x, y));
    }
    alignas(32) std::int32_t lanes[8];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sums);
    for (const std::int32_t lane : lanes) total += lane;
  }
  return total;
}
#include "kernels/simd/end_target.h"
#endif

}  // namespace

std::int64_t int_dot_product(const std::int16_t* a, const std::int8_t* b, std::int64_t count) {
  std::int64_t total = 0, begin = 0;
#if defined(__x86_64__)
  if (count >= 16 && runs_in(SimdTarget::kAvx2)) {
    total = products_by_16(a, b, count);
    begin = count - count % 16;
  }
#endif
  constexpr std::int64_t kRun = 256;  // short enough for 32 bits
  for (; begin < count; begin += kRun) {
    const std::int64_t end = std::min(count, begin + kRun);
    std::int32_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i) sum += a[i] * b[i];
    total += sum;
  }
  return total;
}

}  // namespace reef::kernels

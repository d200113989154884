// SPDX-License-Identifier: Apache-2.0
#include "kernels/reduce/extreme_byte.h"

#include <algorithm>
#include <bit>

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

namespace reef::kernels {

// Bits are flipped so that the number wanted is always the largest unsigned one.
std::int64_t first_extreme_byte(const std::uint8_t* row, std::int64_t count, bool is_signed, bool want_max) {
  const int flip = (is_signed ? 0x80 : 0) ^ (want_max ? 0 : 0xFF);
#if defined(__x86_64__)
  if (count >= 16) {
    const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
    const auto load = [&](std::int64_t i) {
      // The last 16 bytes overlap those before.
      const auto* from = reinterpret_cast<const __m128i*>(row + std::min(i, count - 16));
      return _mm_xor_si128(_mm_loadu_si128(from), flips);
    };
    __m128i best = load(0);
    for (std::int64_t i = 16; i < count; i += 16) best = _mm_max_epu8(best, load(i));
    best = _mm_max_epu8(best, _mm_srli_si128(best, 8));
    best = _mm_max_epu8(best, _mm_srli_si128(best, 4));
    best = _mm_max_epu8(best, _mm_srli_si128(best, 2));
    best = _mm_max_epu8(best, _mm_srli_si128(best, 1));
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(_mm_cvtsi128_si32(best)));
    for (std::int64_t i = 0;; i += 16) {
      const int equal = _mm_movemask_epi8(_mm_cmpeq_epi8(load(i), wanted));
      if (equal != 0) return std::min(i, count - 16) + std::countr_zero(static_cast<unsigned>(equal));
    }
  }
#endif
  std::int64_t at = 0;
  for (std::int64_t i = 1; i < count; ++i) at = (row[i] ^ flip) > (row[at] ^ flip) ? i : at;
  return at;
}

#if defined(__x86_64__)
#define REEF_BODY "kernels/reduce/extreme_byte_body.h"
#include "kernels/simd/in_sse4_and_avx2.h"
#endif

template <typename Index>
void first_extreme_bytes(const std::uint8_t* row, std::int64_t rows, std::int64_t count, bool is_signed, bool want_max,
                         Index* at) {
#if defined(__x86_64__)
  if (count >= 16 && count <= 32 && runs_in(SimdTarget::kSse4)) {
    const int flip = (is_signed ? 0x80 : 0) ^ (want_max ? 0 : 0xFF);
    return active_includes(SimdTarget::kAvx2) ? avx2::search_short_rows(row, rows, count, flip, at)
                                              : sse4::search_short_rows(row, rows, count, flip, at);
  }
#endif
  for (std::int64_t i = 0; i < rows; ++i) {
    at[i] = static_cast<Index>(first_extreme_byte(row + i * count, count, is_signed, want_max));
  }
}
template void first_extreme_bytes(const std::uint8_t*, std::int64_t, std::int64_t, bool, bool, std::int32_t*);
template void first_extreme_bytes(const std::uint8_t*, std::int64_t, std::int64_t, bool, bool, std::int64_t*);

}  // namespace reef::kernels

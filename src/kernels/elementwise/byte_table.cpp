// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VBMI looks 64 bytes up in 128 at once: two such look-ups and a choice by the highest bit make one in
// 256. 64-bit ARM looks 16 bytes up in 64, and leaves those alone that are beyond: four look-ups make one. Elsewhere
// one element at a time is as good as anything.
#include "kernels/elementwise/byte_table.h"

#include "kernels/simd/targets.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace reef::kernels {
namespace {

void look_up_singly(const std::uint8_t* in, std::int64_t count, const ByteTable& table, std::uint8_t* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = table[in[i]];
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) void look_up_64(const std::uint8_t* in,
                                                                                std::int64_t count,
                                                                                const ByteTable& table,
                                                                                std::uint8_t* out) {
  const __m512i first = _mm512_loadu_si512(table.data()), second = _mm512_loadu_si512(table.data() + 64);
  const __m512i third = _mm512_loadu_si512(table.data() + 128), fourth = _mm512_loadu_si512(table.data() + 192);
  std::int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i index = _mm512_loadu_si512(in + i);
    const __m512i low = _mm512_permutex2var_epi8(first, index, second);
    const __m512i high = _mm512_permutex2var_epi8(third, index, fourth);
    _mm512_storeu_si512(out + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
  }
  look_up_singly(in + i, count - i, table, out + i);
}
#elif defined(__aarch64__)
uint8x16x4_t load_quarter(const std::uint8_t* from) {
  return {{vld1q_u8(from), vld1q_u8(from + 16), vld1q_u8(from + 32), vld1q_u8(from + 48)}};
}

void look_up_16(const std::uint8_t* in, std::int64_t count, const ByteTable& table, std::uint8_t* out) {
  const uint8x16x4_t first = load_quarter(table.data()), second = load_quarter(table.data() + 64);
  const uint8x16x4_t third = load_quarter(table.data() + 128), fourth = load_quarter(table.data() + 192);
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t index = vld1q_u8(in + i);
    uint8x16_t result = vqtbl4q_u8(first, index);
    result = vqtbx4q_u8(result, second, vsubq_u8(index, vdupq_n_u8(64)));
    result = vqtbx4q_u8(result, third, vsubq_u8(index, vdupq_n_u8(128)));
    vst1q_u8(out + i, vqtbx4q_u8(result, fourth, vsubq_u8(index, vdupq_n_u8(192))));
  }
  look_up_singly(in + i, count - i, table, out + i);
}
#endif

}  // namespace

void look_up_bytes(const std::uint8_t* in, std::int64_t count, const ByteTable& table, std::uint8_t* out) {
#if defined(__x86_64__)
  static const bool has_vbmi = __builtin_cpu_supports("avx512vbmi");
  if (has_vbmi && active_target() == SimdTarget::kAvx512) return look_up_64(in, count, table, out);
#elif defined(__aarch64__)
  if (active_target() != SimdTarget::kBaseline) return look_up_16(in, count, table, out);
#endif
  look_up_singly(in, count, table, out);
}

}  // namespace reef::kernels

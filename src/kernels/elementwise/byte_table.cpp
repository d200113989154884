// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VBMI looks 64 bytes up in 128 at once: two such look-ups and a choice by the highest bit make one in
// 256. 64-bit ARM looks 16 bytes up in 64, and leaves those alone that are beyond: four look-ups make one. AVX2 looks
// 32 bytes up in 16 and gives 0 where the highest bit is set: sixteen look-ups make one. Elsewhere one element at a
// time is as good as anything.
#include "kernels/elementwise/byte_table.h"

#include "kernels/simd/intrinsics.h"
#include "kernels/simd/trace.h"

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

// Bytes below 128 of a table's first half (or, less 128, of its second). steps[j]: entries 16 j to 16 j + 15, from j =
// 1 on less (xor) those before them. A byte i takes part in step j with i - 16 j, which is negative, and so gives 0, if
// the byte lies further ahead: the steps up to its own add up to its entry.
struct TableSteps {
  alignas(16) std::uint8_t steps[8][16];

  explicit TableSteps(const std::uint8_t* half) {
    for (int i = 0; i < 128; ++i) steps[i / 16][i % 16] = i < 16 ? half[i] : half[i] ^ half[i - 16];
  }
};

#include "kernels/simd/begin_avx2.h"
constexpr int kTogether = 4;  // vectors that a step of the table is loaded for

[[gnu::always_inline]] inline void add_steps(const TableSteps& half, __m256i (&index)[kTogether],
                                             __m256i (&results)[kTogether]) {
  const __m256i sixteen = _mm256_set1_epi8(16);
  for (int v = 0; v < kTogether; ++v) {  // those of the other half: negative in all steps
    index[v] = _mm256_or_si256(index[v], _mm256_cmpgt_epi8(_mm256_setzero_si256(), index[v]));
  }
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) {
    const __m256i step = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(half.steps[j])));
#pragma GCC unroll 4
    for (int v = 0; v < kTogether; ++v) {
      results[v] = _mm256_xor_si256(results[v], _mm256_shuffle_epi8(step, index[v]));
      index[v] = _mm256_sub_epi8(index[v], sixteen);
    }
  }
}

void look_up_32(const std::uint8_t* in, std::int64_t count, const ByteTable& table, std::uint8_t* out) {
  constexpr std::int64_t kBlock = 32 * kTogether;
  const TableSteps low(table.data()), high(table.data() + 128);
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    __m256i below[kTogether], above[kTogether], results[kTogether];
    for (int v = 0; v < kTogether; ++v) {
      below[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i + 32 * v));
      above[v] = _mm256_xor_si256(below[v], _mm256_set1_epi8(-128));
      results[v] = _mm256_setzero_si256();
    }
    add_steps(low, below, results);
    add_steps(high, above, results);
    for (int v = 0; v < kTogether; ++v) _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i + 32 * v), results[v]);
  }
  look_up_singly(in + i, count - i, table, out + i);
}
#include "kernels/simd/end_target.h"
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
  if (has_vbmi && runs_in(SimdTarget::kAvx512)) return look_up_64(in, count, table, out);
  constexpr std::int64_t kFew = 1024;  // the steps must be made first
  if (count >= kFew && runs_in(SimdTarget::kAvx2)) return look_up_32(in, count, table, out);
#elif defined(__aarch64__)
  if (runs_in(SimdTarget::kNeon)) return look_up_16(in, count, table, out);
#endif
  look_up_singly(in, count, table, out);
}

}  // namespace reef::kernels

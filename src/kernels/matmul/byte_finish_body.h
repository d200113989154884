// SPDX-License-Identifier: Apache-2.0
// matmul/byte_scaling.h on vectors of 64 bytes, from sums in registers to bytes in memory. No include guard: it is
// included once per target, see simd/targets.h.

#include "kernels/simd/for_constants_body.h"

constexpr int kWideLanes = 16;

// Which 16-bit halves of two vectors of 16 numbers: the upper ones, the lower ones.
alignas(64) constexpr std::int16_t kUpperWords[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
alignas(64) constexpr std::int16_t kLowerWords[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                                      32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};

// The columns of a tile: kFull vectors of 16, and 8 more if kHalf.
template <int kFull, bool kHalf>
struct TileColumns {
  static constexpr int kVectors = kFull + (kHalf ? 1 : 0);
  static constexpr int kStep = (kFull * kWideLanes + (kHalf ? kLanes : 0)) * 4;  // bytes of a panel per step
  static constexpr int kRowsOfWords = kVectors == 1 ? 2 : 1;  // rows of results that fill a vector of 16-bit numbers
  static constexpr bool is_half(int vector) { return kHalf && vector == kVectors - 1; }
};

struct WideScale {
  __m512 factor, above, below;
};

// Sums times factor plus zero point and one half: 16 bits of result, 16 binary places.
template <bool kPlain>
[[gnu::always_inline]] inline __m512i scale_wide(__m512i sums, const WideScale& by) {
  const __m512 sum = _mm512_cvtepi32_ps(sums);
  if constexpr (kPlain) return _mm512_cvtps_epi32(_mm512_fmadd_ps(sum, by.factor, by.above));
  const __m512 offset = _mm512_mask_mov_ps(by.above, _mm512_movepi32_mask(sums), by.below);
  const __m512 scaled = _mm512_fmadd_ps(sum, by.factor, offset);
  return _mm512_cvtps_epi32(_mm512_min_ps(scaled, _mm512_set1_ps(kLargestScaled)));
}

// Up to four rows of 8 or 16 bytes, or two of 24 or 32, from one vector.
template <typename Columns, int kRows>
[[gnu::always_inline]] inline void store_rows(__m512i bytes, std::uint8_t* to, std::int64_t stride) {
  for_constants<std::min(kRows, 2 * Columns::kRowsOfWords)>([&](auto row) __attribute__((always_inline)) {
    std::uint8_t* const at = to + row * stride;
    if constexpr (Columns::kVectors == 1) {
      const __m128i quarter = _mm512_extracti32x4_epi32(bytes, row);
      if constexpr (Columns::is_half(0)) {
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at), quarter);
      } else {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at), quarter);
      }
    } else {
      const __m256i half = _mm512_extracti64x4_epi64(bytes, row);
      if constexpr (Columns::is_half(1)) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm256_castsi256_si128(half));
        _mm_storel_epi64(reinterpret_cast<__m128i*>(at + 16), _mm256_extracti128_si256(half, 1));
      } else {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), half);
      }
    }
  });
}

// Constants of scaling: loaded once, and kept in registers while there are enough.
struct FinishConstants {
  WideScale by[2];
  __m512i lowest, highest, sure, upper, lower, order;
};
// For columns that begin at slot `slot`; the second vector's, if there is one, 16 slots later.
template <typename Columns>
[[gnu::always_inline]] inline FinishConstants finish_constants(const ByteScaling& scaling, std::int64_t slot) {
  const auto scale_at = [&](std::int64_t at) __attribute__((always_inline)) {
    return WideScale{_mm512_loadu_ps(scaling.factor.data() + at), _mm512_loadu_ps(scaling.above.data() + at),
                     _mm512_loadu_ps(scaling.below.data() + at)};
  };
  return {{scale_at(slot), scale_at(slot + (Columns::kVectors - 1) * kWideLanes)},
          _mm512_set1_epi8(static_cast<char>(scaling.exact->lowest)),
          _mm512_set1_epi8(static_cast<char>(scaling.exact->highest)),
          _mm512_set1_epi16(kSurePlaces),
          _mm512_load_si512(kUpperWords),
          _mm512_load_si512(kLowerWords),
          _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7)};
}

// Which results are in doubt: bits of 32, for one row or for two of 16 columns each.
template <int kRows, typename Columns>
struct Doubts {
  static constexpr int kMasks = (kRows + Columns::kRowsOfWords - 1) / Columns::kRowsOfWords;
  __mmask32 masks[kMasks];
  __mmask32 any = 0;
};

// kRows rows of sums to bytes, `stride` apart. All columns that Columns has are written. Calls nothing, and neither may
// the caller before: sums would lie in memory all the time.
template <int kRows, typename Columns, bool kSigned, bool kPlain>
[[gnu::always_inline]] inline Doubts<kRows, Columns> finish_wide(const FinishConstants& with,
                                                                 const __m512i (&sums)[kRows][Columns::kVectors],
                                                                 std::uint8_t* to, std::int64_t stride) {
  constexpr int kVectors = Columns::kVectors, kRowsOfWords = Columns::kRowsOfWords;
  constexpr int kWordVectors = Doubts<kRows, Columns>::kMasks;
  Doubts<kRows, Columns> doubts;
  // 32 results, as 16-bit numbers.
  const auto words_of = [&](auto index) __attribute__((always_inline)) {
    constexpr int kRow = index * kRowsOfWords, kNext = kVectors == 2 || kRow + 1 >= kRows ? kRow : kRow + 1;
    const __m512i a = scale_wide<kPlain>(sums[kRow][0], with.by[0]);
    const __m512i b = scale_wide<kPlain>(sums[kNext][kVectors - 1], with.by[1]);
    doubts.masks[index] = _mm512_cmplt_epu16_mask(_mm512_permutex2var_epi16(a, with.lower, b), with.sure);
    doubts.any = _kor_mask32(doubts.any, doubts.masks[index]);
    return _mm512_permutex2var_epi16(a, with.upper, b);
  };
  for_constants<(kWordVectors + 1) / 2>([&](auto pair) __attribute__((always_inline)) {
    constexpr int kFirst = 2 * pair, kSecond = kFirst + 1 < kWordVectors ? kFirst + 1 : kFirst;
    const __m512i first = words_of(std::integral_constant<int, kFirst>());
    const __m512i second = kFirst == kSecond ? first : words_of(std::integral_constant<int, kSecond>());
    const __m512i packed = kSigned ? _mm512_packs_epi16(first, second) : _mm512_packus_epi16(first, second);
    const __m512i limited = kPlain    ? packed
                            : kSigned ? _mm512_min_epi8(_mm512_max_epi8(packed, with.lowest), with.highest)
                                      : _mm512_min_epu8(_mm512_max_epu8(packed, with.lowest), with.highest);
    store_rows<Columns, kRows - kFirst * kRowsOfWords>(_mm512_permutexvar_epi64(with.order, limited),
                                                       to + kFirst * kRowsOfWords * stride, stride);
  });
  return doubts;
}

// The columns that there are, of rows of 32 bytes.
[[gnu::noinline]] void copy_rows(const std::uint8_t* from, int rows, std::int64_t columns, std::uint8_t* to,
                                 std::int64_t stride) {
  for (int r = 0; r < rows; ++r) std::memcpy(to + r * stride, from + r * 32, static_cast<std::size_t>(columns));
}

// fix(row, column) for the results in doubt.
template <int kRows, typename Columns, typename Fix>
[[gnu::always_inline]] inline void fix_results(const Doubts<kRows, Columns>& doubts, const Fix& fix) {
  constexpr int kColumns = 32 / Columns::kRowsOfWords;
  for (int i = 0; i < Doubts<kRows, Columns>::kMasks; ++i) {
    for (std::uint32_t left = doubts.masks[i]; left != 0; left &= left - 1) {
      const int bit = std::countr_zero(left);
      fix(i * Columns::kRowsOfWords + bit / kColumns, bit % kColumns);
    }
  }
}

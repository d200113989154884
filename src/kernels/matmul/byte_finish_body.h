// SPDX-License-Identifier: Apache-2.0
// matmul/byte_scaling.h on vectors of 64 bytes, from sums in registers to bytes in memory. No include guard: it is
// included once per target, see simd/targets.h.

constexpr int kWideLanes = 16;

// Which 16-bit halves of two vectors of 16 numbers: the upper ones, the lower ones.
alignas(64) constexpr std::int16_t kUpperWords[32] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                                      33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
alignas(64) constexpr std::int16_t kLowerWords[32] = {0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                                      32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};

// What a tile's columns are: kFull vectors of 16, and 8 more if kHalf.
template <int kFull, bool kHalf>
struct TileColumns {
  static constexpr int kVectors = kFull + (kHalf ? 1 : 0);
  static constexpr int kStep = (kFull * kWideLanes + (kHalf ? kLanes : 0)) * 4;  // bytes of a panel per step
  static constexpr int kRowsOfWords = kVectors == 1 ? 2 : 1;  // rows of results that fill a vector of 16-bit numbers
  static constexpr bool is_half(int vector) { return kHalf && vector == kVectors - 1; }
};

// body(0), body(1), ... with numbers that are constants. (gcc unrolls loops within loops too late to keep arrays of
// vectors that they go through in registers.)
template <int kCount, int kIndex = 0, typename Body>
[[gnu::always_inline]] inline void for_constants(const Body& body) {
  if constexpr (kIndex < kCount) {
    body(std::integral_constant<int, kIndex>());
    for_constants<kCount, kIndex + 1>(body);
  }
}

// Where results go, and how they are scaled: the first row's, from slot `slot` on.
struct ResultRows {
  const ByteScaling* scaling;
  std::int64_t slot, columns;
  std::uint8_t* output;
  std::int64_t output_stride;
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

// Up to four rows of 16 bytes, or two of 24 or 32, from one vector.
template <typename Columns, int kRows>
[[gnu::always_inline]] inline void store_rows(__m512i bytes, std::uint8_t* to, std::int64_t stride) {
  for_constants<std::min(kRows, 2 * Columns::kRowsOfWords)>([&](auto row) __attribute__((always_inline)) {
    std::uint8_t* const at = to + row * stride;
    if constexpr (Columns::kVectors == 1) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm512_extracti32x4_epi32(bytes, row));
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

// The columns that there are, of rows of 32 bytes.
[[gnu::noinline]] void copy_rows(const ResultRows& rows, const std::uint8_t* from, int count) {
  for (int r = 0; r < count; ++r) {
    std::memcpy(rows.output + r * rows.output_stride, from + r * 32, static_cast<std::size_t>(rows.columns));
  }
}

// fix(row, column) for the results in doubt. masks: per vector of 16-bit results, which of them are.
template <typename Fix>
[[gnu::noinline, gnu::cold]] void fix_results(const ResultRows& rows, const __mmask32* masks, int vectors, int count,
                                              int rows_of_words, const Fix& fix) {
  const int columns = 32 / rows_of_words;
  for (int i = 0; i < vectors; ++i) {
    for (std::uint32_t left = masks[i]; left != 0; left &= left - 1) {
      const int bit = std::countr_zero(left), row = i * rows_of_words + bit / columns;
      if (row < count && bit % columns < rows.columns) fix(row, bit % columns);
    }
  }
}

// kRows rows of sums to bytes. fix(row, column) writes a result that floats cannot tell.
template <int kRows, typename Columns, bool kSigned, bool kPlain, typename Fix>
[[gnu::always_inline]] inline void finish_wide(const ResultRows& rows, const __m512i (&sums)[kRows][Columns::kVectors],
                                               const Fix& fix) {
  constexpr int kVectors = Columns::kVectors, kRowsOfWords = Columns::kRowsOfWords;
  constexpr int kWordVectors = (kRows + kRowsOfWords - 1) / kRowsOfWords;
  const auto scale_at = [&](std::int64_t slot) __attribute__((always_inline)) {
    return WideScale{_mm512_loadu_ps(rows.scaling->factor.data() + slot),
                     _mm512_loadu_ps(rows.scaling->above.data() + slot),
                     _mm512_loadu_ps(rows.scaling->below.data() + slot)};
  };
  const WideScale by[2] = {scale_at(rows.slot), scale_at(rows.slot + (kVectors - 1) * kWideLanes)};
  const __m512i lowest = _mm512_set1_epi8(static_cast<char>(rows.scaling->exact->lowest));
  const __m512i highest = _mm512_set1_epi8(static_cast<char>(rows.scaling->exact->highest));
  const __m512i sure = _mm512_set1_epi16(kSurePlaces);
  const __m512i upper = _mm512_load_si512(kUpperWords), lower = _mm512_load_si512(kLowerWords);
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  // Nothing may be called before all sums are used up, or they would lie in memory all the time.
  const bool is_whole = rows.columns == Columns::kStep / 4;
  alignas(32) std::uint8_t part[kRows][32];
  std::uint8_t* const to = is_whole ? rows.output : part[0];
  const std::int64_t stride = is_whole ? rows.output_stride : 32;
  __mmask32 masks[kWordVectors], any = 0;
  // 32 results, as 16-bit numbers.
  const auto words_of = [&](auto index) __attribute__((always_inline)) {
    constexpr int kRow = index * kRowsOfWords, kNext = kVectors == 2 || kRow + 1 >= kRows ? kRow : kRow + 1;
    const __m512i a = scale_wide<kPlain>(sums[kRow][0], by[0]);
    const __m512i b = scale_wide<kPlain>(sums[kNext][kVectors - 1], by[1]);
    masks[index] = _mm512_cmplt_epu16_mask(_mm512_permutex2var_epi16(a, lower, b), sure);
    any |= masks[index];
    return _mm512_permutex2var_epi16(a, upper, b);
  };
  for_constants<(kWordVectors + 1) / 2>([&](auto pair) __attribute__((always_inline)) {
    constexpr int kFirst = 2 * pair, kSecond = kFirst + 1 < kWordVectors ? kFirst + 1 : kFirst;
    const __m512i first = words_of(std::integral_constant<int, kFirst>());
    const __m512i second = kFirst == kSecond ? first : words_of(std::integral_constant<int, kSecond>());
    const __m512i packed = kSigned ? _mm512_packs_epi16(first, second) : _mm512_packus_epi16(first, second);
    const __m512i limited = kSigned ? _mm512_min_epi8(_mm512_max_epi8(packed, lowest), highest)
                                    : _mm512_min_epu8(_mm512_max_epu8(packed, lowest), highest);
    store_rows<Columns, kRows - kFirst * kRowsOfWords>(_mm512_permutexvar_epi64(order, limited),
                                                       to + kFirst * kRowsOfWords * stride, stride);
  });
  if (!is_whole) [[unlikely]]
    copy_rows(rows, part[0], kRows);
  if (any != 0) [[unlikely]]
    fix_results(rows, masks, kWordVectors, kRows, kRowsOfWords, fix);
}

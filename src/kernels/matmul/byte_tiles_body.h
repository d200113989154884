// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h on vectors of 64 bytes, for panels of 16, 24 or 32 columns and scalings of 16
// binary places. Sums stay in registers from the first product to the scaled byte; results that floats cannot tell are
// computed again, alone. No include guard: it is included once per target, see simd/targets.h.

constexpr int kWideLanes = 16;

// What a tile's columns are: kFull vectors of 16, and 8 more if kHalf.
template <int kFull, bool kHalf>
struct TileColumns {
  static constexpr int kVectors = kFull + (kHalf ? 1 : 0);
  static constexpr int kStep = (kFull * kWideLanes + (kHalf ? kLanes : 0)) * kGroup;  // bytes of a panel per step
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

template <bool kIsHalf>
[[gnu::always_inline]] inline __m512i load_wide_weights(const std::int8_t* from) {
  if constexpr (kIsHalf) {
    return _mm512_zextsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  }
  return _mm512_loadu_si512(from);
}
// In assembler, so that the sums stay where they are: gcc 12 moves what its own function returns to another register,
// and in the end to memory.
template <bool kIsHalf>
[[gnu::always_inline]] inline void add_wide_products(__m512i& sums, __m512i x, __m512i w) {
  if constexpr (kIsHalf) {
    asm("vpdpbusd %t2, %t1, %t0" : "+v"(sums) : "v"(x), "v"(w));
  } else {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(x), "v"(w));
  }
}

// One result that floats cannot tell: its sum again, then the reference's function.
[[gnu::noinline, gnu::cold]] void fix_result(const TileWork& work, std::int64_t row, std::int64_t column,
                                             std::int64_t step_bytes) {
  std::uint32_t sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.channel + column)]) +
                      static_cast<std::uint32_t>(work.row_terms == nullptr ? 0 : work.row_terms[row]);
  const std::int8_t* w = work.panel + column * kGroup;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    const RowElement* x = work.starts[row] + line * work.line_stride;
    for (std::int64_t k = 0; k < work.steps; ++k, w += step_bytes) {
      for (int i = 0; i < kGroup; ++i) sum += static_cast<std::uint32_t>(x[k * kGroup + i] * w[i]);
    }
  }
  work.output[row * work.output_stride + column] =
      exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + column);
}

// masks: per vector of 16-bit results, which of them are in doubt.
[[gnu::noinline, gnu::cold]] void fix_results(const TileWork& work, const __mmask32* masks, int count, int rows,
                                              int rows_of_words, std::int64_t step_bytes) {
  const int columns = 32 / rows_of_words;
  for (int i = 0; i < count; ++i) {
    for (std::uint32_t left = masks[i]; left != 0; left &= left - 1) {
      const int bit = std::countr_zero(left), row = i * rows_of_words + bit / columns;
      if (row < rows && bit % columns < work.columns) fix_result(work, row, bit % columns, step_bytes);
    }
  }
}

struct WideScale {
  __m512 factor, above, below;
};

// Sums times factor plus zero point and one half: 16 bits of result, 16 binary places.
template <bool kOneSided>
[[gnu::always_inline]] inline __m512i scale_wide(__m512i sums, const WideScale& by) {
  const __m512 sum = _mm512_cvtepi32_ps(sums);
  const __m512 offset = kOneSided ? by.above : _mm512_mask_mov_ps(by.above, _mm512_movepi32_mask(sums), by.below);
  return _mm512_cvtps_epi32(_mm512_fmadd_ps(sum, by.factor, offset));
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
[[gnu::noinline]] void copy_rows(const TileWork& work, const std::uint8_t* from, int rows) {
  for (int r = 0; r < rows; ++r) {
    std::memcpy(work.output + r * work.output_stride, from + r * 32, static_cast<std::size_t>(work.columns));
  }
}

template <int kRows, typename Columns, bool kSigned, bool kOneSided>
[[gnu::always_inline]] inline void finish_wide(const TileWork& work, const __m512i (&sums)[kRows][Columns::kVectors]) {
  constexpr int kVectors = Columns::kVectors, kRowsOfWords = Columns::kRowsOfWords;
  constexpr int kWordVectors = (kRows + kRowsOfWords - 1) / kRowsOfWords;
  const auto scale_at = [&](std::int64_t slot) __attribute__((always_inline)) {
    return WideScale{_mm512_loadu_ps(work.scaling->factor.data() + slot),
                     _mm512_loadu_ps(work.scaling->above.data() + slot),
                     _mm512_loadu_ps(work.scaling->below.data() + slot)};
  };
  const WideScale by[2] = {scale_at(work.channel), scale_at(work.channel + (kVectors - 1) * kWideLanes)};
  const __m512i lowest = _mm512_set1_epi8(static_cast<char>(work.scaling->exact->lowest));
  const __m512i highest = _mm512_set1_epi8(static_cast<char>(work.scaling->exact->highest));
  const __m512i sure = _mm512_set1_epi16(kSurePlaces);
  const __m512i upper = _mm512_load_si512(kUpperWords), lower = _mm512_load_si512(kLowerWords);
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  // Nothing may be called before all sums are used up, or they would lie in memory all the time.
  const bool is_whole = work.columns == Columns::kStep / kGroup;
  alignas(32) std::uint8_t part[kRows][32];
  std::uint8_t* const to = is_whole ? work.output : part[0];
  const std::int64_t stride = is_whole ? work.output_stride : 32;
  __mmask32 masks[kWordVectors], any = 0;
  // 32 results, as 16-bit numbers.
  const auto words_of = [&](auto index) __attribute__((always_inline)) {
    constexpr int kRow = index * kRowsOfWords, kNext = kVectors == 2 || kRow + 1 >= kRows ? kRow : kRow + 1;
    const __m512i a = scale_wide<kOneSided>(sums[kRow][0], by[0]);
    const __m512i b = scale_wide<kOneSided>(sums[kNext][kVectors - 1], by[1]);
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
    copy_rows(work, part[0], kRows);
  if (any != 0) [[unlikely]]
    fix_results(work, masks, kWordVectors, kRows, kRowsOfWords, Columns::kStep);
}

template <int kRows, typename Columns, bool kSigned, bool kOneSided>
void multiply_wide_tile(const TileWork& work) {
  constexpr int kVectors = Columns::kVectors;
  __m512i sums[kRows][kVectors];
  const std::int32_t* start = work.scaling->start.data() + work.channel;
  const RowElement* x[kRows];
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    x[row] = work.starts[row];
    for_constants<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[row][v] = _mm512_loadu_si512(start + v * kWideLanes);
      if (work.row_terms != nullptr) {
        sums[row][v] = _mm512_add_epi32(sums[row][v], _mm512_set1_epi32(work.row_terms[row]));
      }
    });
  });
  const std::int8_t* w = work.panel;
  const std::int64_t length = work.steps * kGroup;
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) { x[row] += length; });
  for (std::int64_t line = 0; line < work.lines; ++line) {
    for (std::int64_t at = -length; at != 0; at += kGroup, w += Columns::kStep) {
      const __m512i first = load_wide_weights<Columns::is_half(0)>(w);
      const __m512i second =
          kVectors == 2 ? load_wide_weights<Columns::is_half(kVectors - 1)>(w + kWideLanes * kGroup) : first;
      for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
        std::int32_t group;
        std::memcpy(&group, x[row] + at, sizeof group);
        const __m512i value = _mm512_set1_epi32(group);
        add_wide_products<Columns::is_half(0)>(sums[row][0], value, first);
        if constexpr (kVectors == 2) add_wide_products<Columns::is_half(1)>(sums[row][1], value, second);
      });
    }
    for_constants<kRows>([&](auto row) __attribute__((always_inline)) { x[row] += work.line_stride; });
  }
  finish_wide<kRows, Columns, kSigned, kOneSided>(work, sums);
}

template <typename Columns, bool kSigned, bool kOneSided>
void multiply_wide_rows(TileWork work, std::int64_t count) {
  const auto advance = [&](std::int64_t rows) {
    work.starts += rows;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
    count -= rows;
  };
  while (count >= 12) {
    multiply_wide_tile<12, Columns, kSigned, kOneSided>(work);
    advance(12);
  }
  if (count >= 8) {
    multiply_wide_tile<8, Columns, kSigned, kOneSided>(work);
    advance(8);
  }
  if (count >= 4) {
    multiply_wide_tile<4, Columns, kSigned, kOneSided>(work);
    advance(4);
  }
  if (count >= 2) {
    multiply_wide_tile<2, Columns, kSigned, kOneSided>(work);
    advance(2);
  }
  if (count > 0) multiply_wide_tile<1, Columns, kSigned, kOneSided>(work);
}

template <typename Columns>
void multiply_wide_panel(const TileWork& work, std::int64_t count) {
  if (work.is_signed) {
    work.scaling->is_one_sided ? multiply_wide_rows<Columns, true, true>(work, count)
                               : multiply_wide_rows<Columns, true, false>(work, count);
  } else {
    work.scaling->is_one_sided ? multiply_wide_rows<Columns, false, true>(work, count)
                               : multiply_wide_rows<Columns, false, false>(work, count);
  }
}

// Whether this did it: panels of 8 columns and scalings of fewer places are left to multiply_panel.
bool multiply_wide_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  if (!work.scaling->is_fast || work.scaling->bits != kWordBits || vectors == 1) return false;
  if (vectors == 2) multiply_wide_panel<TileColumns<1, false>>(work, count);
  if (vectors == 3) multiply_wide_panel<TileColumns<1, true>>(work, count);
  if (vectors == 4) multiply_wide_panel<TileColumns<2, false>>(work, count);
  return true;
}

// SPDX-License-Identifier: Apache-2.0
// Few columns, for AVX-512 with VNNI: a layer of one to four output channels (a mask, a score at every pixel) or of as
// many outputs would leave most lanes of the tiles of byte_tiles_body.h empty. Here a vector holds 64 products of one
// sum instead: 16 sums are 16 vectors, whose lanes are added up at the end, all together. The same sums, scaled by the
// same formula. No include guard: it is included behind the tile loop.

// Quarters of `a`, then of `b`, each added to its neighbour.
[[gnu::always_inline]] inline __m512i halved(__m512i a, __m512i b) {
  return _mm512_add_epi32(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD));
}

// Lane i of the result: the sum of all lanes of vectors[i].
[[gnu::always_inline]] inline __m512i sums_of_lanes(const __m512i (&vectors)[kWideLanes]) {
  __m512i pairs[8], fours[4];
  for_constants<8>([&](auto i) __attribute__((always_inline)) {
    const __m512i a = vectors[2 * i], b = vectors[2 * i + 1];
    pairs[i] = _mm512_add_epi32(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  });
  for_constants<4>([&](auto i) __attribute__((always_inline)) {
    const __m512i a = pairs[2 * i], b = pairs[2 * i + 1];
    fours[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  });
  return halved(halved(fours[0], fours[1]), halved(fours[2], fours[3]));
}

// Constants of 16 results, of which each row has kColumns.
struct FewConstants {
  WideScale by;
  __m512i start;
};
template <int kColumns>
FewConstants few_constants(const TileWork& work) {
  alignas(64) float factor[kWideLanes], above[kWideLanes], below[kWideLanes];
  alignas(64) std::int32_t start[kWideLanes];
  for (int lane = 0; lane < kWideLanes; ++lane) {
    const auto slot = static_cast<std::size_t>(work.channel + lane % kColumns);
    factor[lane] = work.scaling->factor[slot];
    above[lane] = work.scaling->above[slot];
    below[lane] = work.scaling->below[slot];
    start[lane] = work.scaling->start[slot];
  }
  return {{_mm512_load_ps(factor), _mm512_load_ps(above), _mm512_load_ps(below)}, _mm512_load_si512(start)};
}

// Writes `rows` rows of results, lane by lane.
template <int kColumns, bool kSigned>
[[gnu::always_inline]] inline void finish_few(const TileWork& work, const FewConstants& with, __m512i sums,
                                              std::int64_t rows) {
  sums = _mm512_add_epi32(sums, with.start);
  if (work.row_terms != nullptr) {
    alignas(64) std::int32_t terms[kWideLanes] = {};
    for (std::int64_t lane = 0; lane < rows * kColumns; ++lane) terms[lane] = work.row_terms[lane / kColumns];
    sums = _mm512_add_epi32(sums, _mm512_load_si512(terms));
  }
  const __m512i scaled = scale_wide<false>(sums, with.by);
  const auto valid = static_cast<__mmask16>((1u << (rows * kColumns)) - 1);
  const __m512i places = _mm512_and_si512(scaled, _mm512_set1_epi32((1 << kPlaces) - 1));
  const std::uint32_t doubts = _mm512_mask_cmplt_epu32_mask(valid, places, _mm512_set1_epi32(kSurePlaces));
  const __m512i results = _mm512_srai_epi32(scaled, kPlaces);
  const __m128i lowest = _mm_set1_epi8(static_cast<char>(work.scaling->exact->lowest));
  const __m128i highest = _mm_set1_epi8(static_cast<char>(work.scaling->exact->highest));
  __m128i bytes;
  if constexpr (kSigned) {
    bytes = _mm_min_epi8(_mm_max_epi8(_mm512_cvtsepi32_epi8(results), lowest), highest);
  } else {
    const __m512i positive = _mm512_max_epi32(results, _mm512_setzero_si512());
    bytes = _mm_min_epu8(_mm_max_epu8(_mm512_cvtusepi32_epi8(positive), lowest), highest);
  }
  if (work.output_stride == kColumns) {
    _mm_mask_storeu_epi8(work.output, valid, bytes);
  } else {
    alignas(16) std::uint8_t part[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(part), bytes);
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(work.output + row * work.output_stride, part + row * kColumns, kColumns);
  }
  for (std::uint32_t left = doubts; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    fix_result(work, lane / kColumns, lane % kColumns, TileColumns<0, true>::kStep);
  }
}

// add(from, mask) for each 64 elements of a line; the mask has those that there are.
template <typename Add>
[[gnu::always_inline]] inline void for_each_chunk(std::int64_t length, const Add& add) {
  std::int64_t k = 0;
  for (; k + 64 <= length; k += 64) add(k, ~__mmask64{0});
  if (k < length) add(k, (__mmask64{1} << (length - k)) - 1);
}

// As many rows as fill a vector of results, or fewer.
template <int kColumns, bool kSigned>
void multiply_few_rows(const TileWork& work, const FewConstants& with, std::int64_t rows) {
  constexpr int kRows = kWideLanes / kColumns;
  __m512i sums[kWideLanes];
  for_constants<kWideLanes>([&](auto i) __attribute__((always_inline)) { sums[i] = _mm512_setzero_si512(); });
  const RowElement* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = work.starts[std::min<std::int64_t>(r, rows - 1)];
  const std::int8_t* w = work.few;
  for (std::int64_t line = 0; line < work.lines; ++line, w += work.few_line) {
    for_each_chunk(
        work.steps * kGroup, [&](std::int64_t k, __mmask64 mask) __attribute__((always_inline)) {
          for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
            const __m512i value = _mm512_maskz_loadu_epi8(mask, x[row] + k);
            for_constants<kColumns>([&](auto c) __attribute__((always_inline)) {
              add_wide_products<false>(sums[row * kColumns + c], value,
                                       _mm512_loadu_si512(w + c * work.lines * work.few_line + k));
            });
          });
        });
    for (int r = 0; r < kRows; ++r) x[r] += work.line_stride;
  }
  finish_few<kColumns, kSigned>(work, with, sums_of_lanes(sums), rows);
}

// One row alone: its pieces take turns at several sums, or each addition would wait for the last.
template <int kColumns, bool kSigned>
void multiply_few_in_one_row(const TileWork& work, const FewConstants& with) {
  constexpr int kTurns = kWideLanes / kColumns;
  __m512i sums[kWideLanes];
  for_constants<kWideLanes>([&](auto i) __attribute__((always_inline)) { sums[i] = _mm512_setzero_si512(); });
  const RowElement* x = work.starts[0];
  const std::int8_t* w = work.few;
  const std::int64_t length = work.steps * kGroup;
  for (std::int64_t line = 0; line < work.lines; ++line, w += work.few_line, x += work.line_stride) {
    for (std::int64_t begin = 0; begin < length; begin += 64 * kTurns) {
      for_constants<kTurns>([&](auto turn) __attribute__((always_inline)) {
        const std::int64_t k = begin + turn * 64;
        if (k >= length) return;
        const __mmask64 mask = length - k >= 64 ? ~__mmask64{0} : (__mmask64{1} << (length - k)) - 1;
        const __m512i value = _mm512_maskz_loadu_epi8(mask, x + k);
        for_constants<kColumns>([&](auto c) __attribute__((always_inline)) {
          add_wide_products<false>(sums[turn * kColumns + c], value,
                                   _mm512_loadu_si512(w + c * work.lines * work.few_line + k));
        });
      });
    }
  }
  alignas(64) std::int32_t lanes[kWideLanes], totals[kWideLanes] = {};
  _mm512_store_si512(lanes, sums_of_lanes(sums));
  for (int lane = 0; lane < kTurns * kColumns; ++lane) totals[lane % kColumns] += lanes[lane];
  finish_few<kColumns, kSigned>(work, with, _mm512_load_si512(totals), 1);
}

template <int kColumns, bool kSigned>
void multiply_few(TileWork work, std::int64_t count) {
  const FewConstants with = few_constants<kColumns>(work);
  if (count == 1) return multiply_few_in_one_row<kColumns, kSigned>(work, with);
  for (std::int64_t rows; count > 0; count -= rows) {
    rows = std::min<std::int64_t>(count, kWideLanes / kColumns);
    multiply_few_rows<kColumns, kSigned>(work, with, rows);
    work.starts += rows;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
  }
}

// The panel's only columns, one to kMostFewColumns.
void multiply_few_columns(const TileWork& work, std::int64_t count) {
  static_assert(kMostFewColumns == 4);
  if (work.columns == 1) work.is_signed ? multiply_few<1, true>(work, count) : multiply_few<1, false>(work, count);
  if (work.columns == 2) work.is_signed ? multiply_few<2, true>(work, count) : multiply_few<2, false>(work, count);
  if (work.columns == 3) work.is_signed ? multiply_few<3, true>(work, count) : multiply_few<3, false>(work, count);
  if (work.columns == 4) work.is_signed ? multiply_few<4, true>(work, count) : multiply_few<4, false>(work, count);
}

// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h for one x86 target. REEF_VNNI: rows of unsigned bytes, four products at a time;
// else rows of 16-bit numbers, two at a time. No include guard: it is included once per target, see simd/targets.h.

#if REEF_VNNI
using RowElement = std::uint8_t;
constexpr int kGroup = 4;
[[gnu::always_inline]] inline __m256i load_weights(const std::int8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i x, __m256i w) {
  return _mm256_dpbusd_epi32(sums, x, w);
}
#else
using RowElement = std::int16_t;
constexpr int kGroup = 2;
[[gnu::always_inline]] inline __m256i load_weights(const std::int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i x, __m256i w) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(x, w));
}
#endif

struct TileWork {
  const RowElement* rows;
  std::int64_t row_stride, steps;  // elements; groups of products
  const std::int32_t* row_terms;   // per row, added to all its sums; null: none
  const std::int8_t* panel;
  const ByteScaling* scaling;
  std::int64_t channel, columns;  // first of the panel; how many there are
  std::uint8_t* output;           // of the first row and the panel's first column
  std::int64_t output_stride;
  bool is_signed;
};

#include "kernels/matmul/byte_scaling_body.h"

// Results that floats cannot tell, by the reference's function.
void fix_row(const TileWork& work, const __m256i* sums, int vectors, std::uint8_t* to) {
  const ByteScaling& scaling = *work.scaling;
  for (int v = 0; v < vectors; ++v) {
    const std::int64_t first = work.channel + v * kLanes;
    const unsigned lanes = unsure_lanes(scaling, sums[v], first);
    if (lanes == 0) continue;
    alignas(32) std::int32_t sum[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(sum), sums[v]);
    for (int i = 0; i < kLanes && v * kLanes + i < work.columns; ++i) {
      if ((lanes >> i & 1) != 0) to[v * kLanes + i] = exact_byte(*scaling.exact, sum[i], first + i);
    }
  }
}

// Zero point, limits, and one row's bytes to memory. `results` beyond kVectors are not looked at.
template <int kVectors>
[[gnu::always_inline]] inline void store_row(const TileWork& work, const __m256i* results, std::uint8_t* to) {
  const Requantizer& q = *work.scaling->exact;
  const __m256i zero_point = _mm256_set1_epi16(static_cast<std::int16_t>(q.zero_point));
  const __m256i first = results[0], second = kVectors > 1 ? results[kVectors > 1 ? 1 : 0] : first;
  const __m256i third = kVectors > 2 ? results[kVectors > 2 ? 2 : 0] : first;
  const __m256i fourth = kVectors > 3 ? results[kVectors > 3 ? 3 : 0] : third;
  const __m256i low = _mm256_adds_epi16(_mm256_packs_epi32(first, second), zero_point);
  const __m256i high = kVectors > 2 ? _mm256_adds_epi16(_mm256_packs_epi32(third, fourth), zero_point) : low;
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(limited_bytes(q, work.is_signed, low, high), order);
  // Masked stores of bytes take a Zen 4 core longer than all of the above.
  if (work.columns == 4 * kLanes) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
    return;
  }
  const __m128i half = _mm256_castsi256_si128(bytes);
  if (kVectors <= 2 && work.columns == 2 * kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
  } else if (kVectors == 3 && work.columns == 3 * kLanes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * kLanes), _mm256_extracti128_si256(bytes, 1));
  } else if (work.columns == kLanes) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), half);
  } else {
    alignas(32) std::uint8_t all[4 * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(all), bytes);
    std::memcpy(to, all, static_cast<std::size_t>(work.columns));
  }
}

// Not inlined: gcc would keep the sums of the loop before in memory.
template <int kRows, int kVectors>
[[gnu::noinline]] void finish_tile(const TileWork& work, const __m256i (&sums)[kRows][kVectors]) {
  ScaleVectors by[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) by[v] = load_scale(*work.scaling, work.channel + v * kLanes);
  const __m256i mask = _mm256_set1_epi32(work.scaling->mask());
  const __m128i bits = _mm_cvtsi32_si128(work.scaling->bits);
  __m256i least = mask;  // binary places of all results: the closest to an integer
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
    __m256i results[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i scaled = scale(sums[r][v], by[v]);
      results[v] = _mm256_sra_epi32(scaled, bits);
      least = _mm256_min_epu32(least, _mm256_and_si256(scaled, mask));
    }
    store_row<kVectors>(work, results, work.output + r * work.output_stride);
  }
  if (!all_sure(*work.scaling, least)) [[unlikely]] {
    for (int r = 0; r < kRows; ++r) fix_row(work, sums[r], kVectors, work.output + r * work.output_stride);
  }
}

template <int kRows, int kVectors>
void multiply_tile(const TileWork& work) {
  __m256i sums[kRows][kVectors];
  const std::int32_t* start = work.scaling->start.data() + work.channel;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(start + v * kLanes));
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      sums[r][v] = work.row_terms == nullptr ? first : _mm256_add_epi32(first, _mm256_set1_epi32(work.row_terms[r]));
    }
  }
  const RowElement* x[kRows];
  for (int r = 0; r < kRows; ++r) x[r] = work.rows + r * work.row_stride;
  const std::int8_t* w = work.panel;
  for (std::int64_t k = 0; k < work.steps; ++k, w += kVectors * kLanes * kGroup) {
    __m256i weights[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) weights[v] = load_weights(w + v * kLanes * kGroup);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      std::int32_t group;
      std::memcpy(&group, x[r] + k * kGroup, sizeof group);
      const __m256i value = _mm256_set1_epi32(group);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[r][v] = add_products(sums[r][v], value, weights[v]);
    }
  }
  // Copied, so that the sums above can stay in registers: what others see must lie in memory.
  __m256i finished[kRows][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) finished[r][v] = sums[r][v];
  }
  finish_tile<kRows, kVectors>(work, finished);
}

// All rows: tiles of the usual number of rows, then smaller ones.
template <int kVectors>
void multiply_rows(TileWork work, std::int64_t count) {
  const auto advance = [&](std::int64_t rows) {
    work.rows += rows * work.row_stride;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
    count -= rows;
  };
  for (; count >= REEF_TILE_ROWS(kVectors); advance(REEF_TILE_ROWS(kVectors))) {
    multiply_tile<REEF_TILE_ROWS(kVectors), kVectors>(work);
  }
  for (; count >= 4; advance(4)) multiply_tile<4, kVectors>(work);
  for (; count >= 2; advance(2)) multiply_tile<2, kVectors>(work);
  if (count > 0) multiply_tile<1, kVectors>(work);
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  switch (vectors) {
    case 1:
      return multiply_rows<1>(work, count);
#if REEF_VNNI
    case 3:
      return multiply_rows<3>(work, count);
    case 4:
      return multiply_rows<4>(work, count);
#endif
    default:
      return multiply_rows<2>(work, count);
  }
}

// One piece of a row: `length` bytes become row elements, and their sum is returned.
// flip: 0x80 for int8 with VNNI, which makes it unsigned; zero_point: what is subtracted otherwise.
template <typename T>
std::int32_t load_piece(const T* from, std::int64_t length, std::int32_t zero_point, bool with_sum, RowElement* to) {
#if REEF_VNNI
  (void)zero_point;
  const __m256i flip = _mm256_set1_epi8(std::is_signed_v<T> ? static_cast<char>(0x80) : 0);
  __m256i total = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < length; i += 32) {
    const std::int64_t left = length - i;
    const __mmask32 mask = left >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((1u << left) - 1);
    const __m256i bytes = _mm256_xor_si256(_mm256_maskz_loadu_epi8(mask, from + i), flip);
    _mm256_mask_storeu_epi8(to + i, mask, bytes);
    if (with_sum) {
      const __m256i counted = _mm256_maskz_mov_epi8(mask, bytes);  // the others hold `flip`
      total = _mm256_add_epi64(total, _mm256_sad_epu8(counted, _mm256_setzero_si256()));
    }
  }
  if (!with_sum) return 0;
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(total), _mm256_extracti128_si256(total, 1));
  return static_cast<std::int32_t>(_mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
#else
  std::int32_t total = 0;
  for (std::int64_t i = 0; i < length; ++i) to[i] = static_cast<std::int16_t>(from[i] - zero_point);
  if (with_sum) {
    for (std::int64_t i = 0; i < length; ++i) total += to[i];
  }
  return total;
#endif
}

// `count` rows, one after the other; padding at the end of each stays 0. row_sums: null if they are not needed.
template <typename T>
void load_rows(const WindowRows<T>& windows, std::int64_t count, bool is_contiguous, std::int32_t zero_point,
               RowElement* rows, std::int64_t row_stride, std::int32_t* row_sums) {
  if (is_contiguous && row_sums == nullptr) {
    load_piece(windows.rows()[0], count * row_stride, zero_point, false, rows);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    std::uint32_t total = 0;
    for (std::int64_t run = 0; run < windows.runs(); ++run) {
      total += static_cast<std::uint32_t>(load_piece(windows.rows()[run * windows.row_capacity() + r], windows.length(),
                                                     zero_point, row_sums != nullptr,
                                                     rows + r * row_stride + run * windows.length()));
    }
    if (row_sums != nullptr) row_sums[r] = static_cast<std::int32_t>(total);
  }
}

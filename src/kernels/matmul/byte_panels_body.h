// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h for AVX2: rows of 16-bit numbers, two products at a time. No include guard: it
// is included between brackets, see simd/targets.h.

using RowElement = std::int16_t;
constexpr int kGroup = 2;
template <int kVectors>
constexpr int kTileRows = kVectors == 1 ? 8 : 5;

[[gnu::always_inline]] inline __m256i load_weights(const std::int8_t* from) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
[[gnu::always_inline]] inline __m256i add_products(__m256i sums, __m256i x, __m256i w) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(x, w));
}

#include "kernels/matmul/byte_tile_work_body.h"

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

// One row's bytes to memory. Masked stores of bytes would take a Zen 4 core longer than all that comes before.
template <int kVectors, bool kWhole>
[[gnu::always_inline]] inline void store_row(__m256i bytes, std::int64_t columns, std::uint8_t* to) {
  const __m128i half = _mm256_castsi256_si128(bytes);
  if constexpr (!kWhole) {
    alignas(32) std::uint8_t all[4 * kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(all), bytes);
    std::memcpy(to, all, static_cast<std::size_t>(columns));
  } else if constexpr (kVectors == 4) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), bytes);
  } else if constexpr (kVectors == 3) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 2 * kLanes), _mm256_extracti128_si256(bytes, 1));
  } else if constexpr (kVectors == 2) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), half);
  } else {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to), half);
  }
}

// kWhole: all columns of the vectors count. Not inlined: gcc would keep the sums of the loop before in memory.
template <int kRows, int kVectors, bool kSigned, bool kWhole>
[[gnu::noinline]] void finish_tile(const TileWork& work, const __m256i (&sums)[kRows][kVectors]) {
  ScaleVectors by[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) by[v] = load_scale(*work.scaling, work.channel + v * kLanes);
  const ByteLimits limits = load_limits(*work.scaling);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  std::uint8_t* to = work.output;
  const std::int64_t stride = work.output_stride, columns = work.columns;
  __m256i least = limits.mask;  // binary places of all results: the closest to an integer
  for (int r = 0; r < kRows; ++r, to += stride) {
    __m256i results[4];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const __m256i scaled = scale(sums[r][v], by[v]);
      results[v] = _mm256_srai_epi32(scaled, kPlaces);
      least = _mm256_min_epu32(least, _mm256_and_si256(scaled, limits.mask));
    }
#pragma GCC unroll 4
    for (int v = kVectors; v < 4; ++v) results[v] = results[kVectors - 1];
    const __m256i low = _mm256_packs_epi32(results[0], results[1]);
    const __m256i high = kVectors > 2 ? _mm256_packs_epi32(results[2], results[3]) : low;
    const __m256i bytes = _mm256_permutevar8x32_epi32(limited_bytes<kSigned>(limits, low, high), order);
    store_row<kVectors, kWhole>(bytes, columns, to);
  }
  if (!all_sure(least)) [[unlikely]] {
    for (int r = 0; r < kRows; ++r) fix_row(work, sums[r], kVectors, work.output + r * work.output_stride);
  }
}

template <int kRows, int kVectors>
void finish_tile(const TileWork& work, const __m256i (&sums)[kRows][kVectors]) {
  if (work.columns == kVectors * kLanes) {
    work.is_signed ? finish_tile<kRows, kVectors, true, true>(work, sums)
                   : finish_tile<kRows, kVectors, false, true>(work, sums);
  } else {
    work.is_signed ? finish_tile<kRows, kVectors, true, false>(work, sums)
                   : finish_tile<kRows, kVectors, false, false>(work, sums);
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
  for (int r = 0; r < kRows; ++r) x[r] = work.starts[r];
  const std::int8_t* w = work.panel;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    const std::int64_t begin = line * work.line_stride, end = begin + work.steps * kGroup;
    for (std::int64_t at = begin; at < end; at += kGroup, w += kVectors * kLanes * kGroup) {
      __m256i weights[kVectors];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) weights[v] = load_weights(w + v * kLanes * kGroup);
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        std::int32_t group;
        std::memcpy(&group, x[r] + at, sizeof group);
        const __m256i value = _mm256_set1_epi32(group);
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) sums[r][v] = add_products(sums[r][v], value, weights[v]);
      }
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
    work.starts += rows;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
    count -= rows;
  };
  while (count >= kTileRows<kVectors>) {
    multiply_tile<kTileRows<kVectors>, kVectors>(work);
    advance(kTileRows<kVectors>);
  }
  while (count >= 4) {
    multiply_tile<4, kVectors>(work);
    advance(4);
  }
  while (count >= 2) {
    multiply_tile<2, kVectors>(work);
    advance(2);
  }
  if (count > 0) multiply_tile<1, kVectors>(work);
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  vectors == 1 ? multiply_rows<1>(work, count) : multiply_rows<2>(work, count);
}

// One row by several panels: nothing is better than multiply_panel.
std::int64_t multiply_row(const TileWork&, std::int64_t) { return 0; }

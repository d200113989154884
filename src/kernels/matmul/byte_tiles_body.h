// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h for AVX-512 with VNNI: rows of unsigned bytes, four products at a time, 16 sums
// in a vector. Sums stay in registers from the first product to the scaled byte; results that floats cannot tell are
// computed again, alone. No include guard: it is included between brackets, see simd/targets.h.

using RowElement = std::uint8_t;
constexpr int kGroup = 4;

#include "kernels/simd/vectors_body.h"

static_assert(kLanes == 8);  // columns come in multiples of this

#include "kernels/matmul/byte_tile_work_body.h"

#include "kernels/matmul/byte_finish_body.h"

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
void fix_result(const TileWork& work, std::int64_t row, std::int64_t column, std::int64_t step_bytes) {
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

template <int kRows, typename Columns>
[[gnu::noinline, gnu::cold]] void fix_tile(const TileWork& work, const Doubts<kRows, Columns>& doubts) {
  fix_results(doubts, [&](int row, int column) {
    if (row < kRows && column < work.columns) fix_result(work, row, column, Columns::kStep);
  });
}

// Adds all products of a tile.
template <int kRows, typename Columns>
[[gnu::always_inline]] inline void add_tile_products(const TileWork& work, __m512i (&sums)[kRows][Columns::kVectors]) {
  constexpr int kVectors = Columns::kVectors;
  const RowElement* x[kRows];
  const std::int8_t* w = work.panel;
  const std::int64_t length = work.steps * kGroup;
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) { x[row] = work.starts[row] + length; });
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
}

// The sums themselves, whole vectors of columns.
template <int kRows, typename Columns>
void sum_wide_tile(const TileWork& work) {
  __m512i sums[kRows][Columns::kVectors];
  for_constants<kRows * Columns::kVectors>([&](auto i) __attribute__((always_inline)) {
    sums[i / Columns::kVectors][i % Columns::kVectors] = _mm512_setzero_si512();
  });
  add_tile_products<kRows, Columns>(work, sums);
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    for_constants<Columns::kVectors>([&](auto v) __attribute__((always_inline)) {
      std::int32_t* const to = work.sums + row * work.sums_stride + v * kWideLanes;
      if constexpr (Columns::is_half(v)) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_castsi512_si256(sums[row][v]));
      } else {
        _mm512_storeu_si512(to, sums[row][v]);
      }
    });
  });
}

template <int kRows, typename Columns, bool kSigned, bool kPlain>
void multiply_wide_tile(const TileWork& work) {
  constexpr int kVectors = Columns::kVectors;
  __m512i sums[kRows][kVectors];
  const std::int32_t* start = work.scaling->start.data() + work.channel;
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    for_constants<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[row][v] = _mm512_loadu_si512(start + v * kWideLanes);
      if (work.row_terms != nullptr) {
        sums[row][v] = _mm512_add_epi32(sums[row][v], _mm512_set1_epi32(work.row_terms[row]));
      }
    });
  });
  add_tile_products<kRows, Columns>(work, sums);
  const bool is_whole = work.columns == Columns::kStep / kGroup;
  alignas(32) std::uint8_t part[kRows][32];
  const auto doubts = finish_wide<kRows, Columns, kSigned, kPlain>(
      finish_constants<Columns>(*work.scaling, work.channel), sums, is_whole ? work.output : part[0],
      is_whole ? work.output_stride : 32);
  if (!is_whole) [[unlikely]]
    copy_rows(part[0], kRows, work.columns, work.output, work.output_stride);
  if (doubts.any != 0) [[unlikely]]
    fix_tile(work, doubts);
}

// All rows, by `tile`, a function of a number of rows that is a constant and of the work.
template <typename Tile>
[[gnu::always_inline]] inline void for_each_wide_tile(TileWork work, std::int64_t count, const Tile& tile) {
  const auto advance = [&](auto rows) {
    tile(rows, work);
    work.starts += rows;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
    work.sums += rows * work.sums_stride;
    count -= rows;
  };
  while (count >= 12) advance(std::integral_constant<int, 12>());
  if (count >= 8) advance(std::integral_constant<int, 8>());
  if (count >= 4) advance(std::integral_constant<int, 4>());
  if (count >= 2) advance(std::integral_constant<int, 2>());
  if (count > 0) advance(std::integral_constant<int, 1>());
}

template <typename Columns, bool kSigned, bool kPlain>
void multiply_wide_rows(const TileWork& work, std::int64_t count) {
  for_each_wide_tile(work, count,
                     [](auto rows, const TileWork& tile) { multiply_wide_tile<rows, Columns, kSigned, kPlain>(tile); });
}
template <typename Columns>
void sum_wide_rows(const TileWork& work, std::int64_t count) {
  for_each_wide_tile(work, count, [](auto rows, const TileWork& tile) { sum_wide_tile<rows, Columns>(tile); });
}

void sum_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  if (vectors == 1) sum_wide_rows<TileColumns<0, true>>(work, count);
  if (vectors == 2) sum_wide_rows<TileColumns<1, false>>(work, count);
  if (vectors == 3) sum_wide_rows<TileColumns<1, true>>(work, count);
  if (vectors == 4) sum_wide_rows<TileColumns<2, false>>(work, count);
}

template <typename Columns>
void multiply_wide_panel(const TileWork& work, std::int64_t count) {
  if (work.is_signed) {
    work.scaling->is_plain ? multiply_wide_rows<Columns, true, true>(work, count)
                           : multiply_wide_rows<Columns, true, false>(work, count);
  } else {
    work.scaling->is_plain ? multiply_wide_rows<Columns, false, true>(work, count)
                           : multiply_wide_rows<Columns, false, false>(work, count);
  }
}

#include "kernels/matmul/byte_few_body.h"

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  if (work.few != nullptr) return multiply_few_columns(work, count);
  if (vectors == 1) multiply_wide_panel<TileColumns<0, true>>(work, count);
  if (vectors == 2) multiply_wide_panel<TileColumns<1, false>>(work, count);
  if (vectors == 3) multiply_wide_panel<TileColumns<1, true>>(work, count);
  if (vectors == 4) multiply_wide_panel<TileColumns<2, false>>(work, count);
}

// One row by kPanels whole panels: as many sums at once as the multipliers' latency asks for.
template <int kPanels, bool kSigned, bool kPlain>
void multiply_one_row(const TileWork& work) {
  using Columns = TileColumns<2, false>;
  __m512i sums[kPanels][1][2];
  const std::int64_t panel_bytes = work.lines * work.steps * Columns::kStep;
  const std::int32_t* start = work.scaling->start.data() + work.channel;
  const __m512i term = _mm512_set1_epi32(work.row_terms == nullptr ? 0 : work.row_terms[0]);
  for_constants<kPanels>([&](auto p) __attribute__((always_inline)) {
    sums[p][0][0] = _mm512_add_epi32(_mm512_loadu_si512(start + p * 32), term);
    sums[p][0][1] = _mm512_add_epi32(_mm512_loadu_si512(start + p * 32 + kWideLanes), term);
  });
  const std::int8_t* w = work.panel;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    const RowElement* x = work.starts[0] + line * work.line_stride;
    for (std::int64_t k = 0; k < work.steps; ++k, w += Columns::kStep) {
      std::int32_t group;
      std::memcpy(&group, x + k * kGroup, sizeof group);
      const __m512i value = _mm512_set1_epi32(group);
      for_constants<kPanels>([&](auto p) __attribute__((always_inline)) {
        const std::int8_t* from = w + p * panel_bytes;
        add_wide_products<false>(sums[p][0][0], value, _mm512_loadu_si512(from));
        add_wide_products<false>(sums[p][0][1], value, _mm512_loadu_si512(from + kWideLanes * kGroup));
      });
    }
  }
  for_constants<kPanels>([&](auto p) __attribute__((always_inline)) {
    const auto doubts = finish_wide<1, Columns, kSigned, kPlain>(
        finish_constants<Columns>(*work.scaling, work.channel + p * 32), sums[p], work.output + p * 32, 32);
    if (doubts.any != 0) [[unlikely]] {
      TileWork of_panel = work;
      of_panel.panel += p * panel_bytes;
      of_panel.channel += p * 32;
      of_panel.output += p * 32;
      fix_tile(of_panel, doubts);
    }
  });
}

template <bool kSigned, bool kPlain>
std::int64_t multiply_one_row(TileWork work, std::int64_t panels) {
  const std::int64_t panel_bytes = work.lines * work.steps * 32 * kGroup;
  const std::int64_t all = panels;
  const auto advance = [&](std::int64_t count) {
    work.panel += count * panel_bytes;
    work.channel += count * 32;
    work.output += count * 32;
    panels -= count;
  };
  while (panels >= 4) {
    multiply_one_row<4, kSigned, kPlain>(work);
    advance(4);
  }
  while (panels >= 2) {
    multiply_one_row<2, kSigned, kPlain>(work);
    advance(2);
  }
  return all - panels;
}

// One row by panels of 32 columns, one after the other; returns how many were done.
std::int64_t multiply_row(const TileWork& work, std::int64_t panels) {
  const bool is_plain = work.scaling->is_plain;
  if (work.is_signed) {
    return is_plain ? multiply_one_row<true, true>(work, panels) : multiply_one_row<true, false>(work, panels);
  }
  return is_plain ? multiply_one_row<false, true>(work, panels) : multiply_one_row<false, false>(work, panels);
}

// The sums of one row by kPanels whole panels.
template <int kPanels>
void sum_one_row(const TileWork& work) {
  using Columns = TileColumns<2, false>;
  __m512i sums[2 * kPanels];
  for_constants<2 * kPanels>([&](auto i) __attribute__((always_inline)) { sums[i] = _mm512_setzero_si512(); });
  const std::int64_t panel_bytes = work.lines * work.steps * Columns::kStep;
  const std::int8_t* w = work.panel;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    const RowElement* x = work.starts[0] + line * work.line_stride;
    for (std::int64_t k = 0; k < work.steps; ++k, w += Columns::kStep) {
      std::int32_t group;
      std::memcpy(&group, x + k * kGroup, sizeof group);
      const __m512i value = _mm512_set1_epi32(group);
      for_constants<2 * kPanels>([&](auto i) __attribute__((always_inline)) {
        const std::int8_t* from = w + i / 2 * panel_bytes + i % 2 * kWideLanes * kGroup;
        add_wide_products<false>(sums[i], value, _mm512_loadu_si512(from));
      });
    }
  }
  for_constants<2 * kPanels>([&](auto i) __attribute__((always_inline)) {
    _mm512_storeu_si512(work.sums + i * kWideLanes, sums[i]);
  });
}

// One row by panels of 32 columns, one after the other; returns how many were done.
std::int64_t sum_row(const TileWork& work, std::int64_t panels) {
  if (panels >= 4) return sum_one_row<4>(work), 4;
  if (panels >= 2) return sum_one_row<2>(work), 2;
  return 0;
}

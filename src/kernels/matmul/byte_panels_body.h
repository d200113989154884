// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h on vectors of 16 or 32 bytes: for SSE4 and AVX2 rows of 16-bit numbers, two
// products at a time; for AVX-VNNI (REEF_DOTS) rows of unsigned bytes, four at a time. A panel of two vectors' columns
// has the even ones in the first and the odd ones in the second, so that results taken in turn are in order. Sums stay
// in registers from the first product to the byte; results that floats cannot tell are computed again, alone. No
// include guard: it is included between brackets, see simd/targets.h.

#if REEF_DOTS
using RowElement = std::uint8_t;
constexpr int kGroup = 4;
#else
using RowElement = std::int16_t;
constexpr int kGroup = 2;
#endif
template <int kVectors>
constexpr int kTileRows = kVectors == 1 ? 8 : 6;

#include "kernels/matmul/byte_tile_work_body.h"

#include "kernels/matmul/byte_scaling_body.h"

template <int kVectors>
constexpr int kStepBytes = kVectors* kLanes* kGroup;

// A group of a row's elements, for all columns.
[[gnu::always_inline]] inline Ints broadcast_group(const RowElement* from) {
  std::int32_t group;
  std::memcpy(&group, from, sizeof group);
  return REEF_MM(set1_epi32)(group);
}
#if REEF_DOTS
[[gnu::always_inline]] inline Ints load_weights(const std::int8_t* from) { return load_ints(from); }
// A group of a row's elements by one or two vectors of weights. In assembler, so that the sums stay where they are: gcc
// 12 moves what its own function returns to another register.
[[gnu::always_inline]] inline void add_dots(Ints& sums, Ints x, Ints w) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sums) : "x"(x), "x"(w));
}
[[gnu::always_inline]] inline void add_products(Ints& sums0, Ints& sums1, const RowElement* four, Ints w0, Ints w1) {
  const Ints value = broadcast_group(four);
  add_dots(sums0, value, w0);
  add_dots(sums1, value, w1);
}
#else
[[gnu::always_inline]] inline Ints load_weights(const std::int8_t* from) { return widened_bytes<true>(from); }
// A pair of a row's elements by one or two vectors of weights. In assembler: 12 sums, two vectors of weights and the
// two used here are all the registers there are, and gcc 12 would need one more.
[[gnu::always_inline]] inline void add_products(Ints& sums0, Ints& sums1, const RowElement* pair, Ints w0, Ints w1) {
  Ints value, product;
#if REEF_VECTOR_BYTES == 32
  asm("vpbroadcastd %[pair], %[value]\n\t"
      "vpmaddwd %[w0], %[value], %[product]\n\t"
      "vpmaddwd %[w1], %[value], %[value]\n\t"
      "vpaddd %[product], %[sums0], %[sums0]\n\t"
      "vpaddd %[value], %[sums1], %[sums1]"
#else
  asm("movd %[pair], %[value]\n\t"
      "pshufd $0, %[value], %[value]\n\t"
      "movdqa %[value], %[product]\n\t"
      "pmaddwd %[w0], %[product]\n\t"
      "pmaddwd %[w1], %[value]\n\t"
      "paddd %[product], %[sums0]\n\t"
      "paddd %[value], %[sums1]"
#endif
      : [sums0] "+x"(sums0), [sums1] "+x"(sums1), [value] "=&x"(value), [product] "=&x"(product)
      : [pair] "m"(*reinterpret_cast<const RowElement(*)[2]>(pair)), [w0] "x"(w0), [w1] "x"(w1));
}
[[gnu::always_inline]] inline void add_dots(Ints& sums, Ints x, Ints w) {
  sums = REEF_MM(add_epi32)(sums, REEF_MM(madd_epi16)(x, w));
}
#endif

// One result that floats cannot tell: its sum again, then the reference's function.
template <int kVectors>
void fix_result(const TileWork& work, std::int64_t row, std::int64_t column) {
  const std::int64_t place = kVectors == 2 ? column % 2 * kLanes + column / 2 : column;
  std::uint32_t sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.slot + place)]) +
                      static_cast<std::uint32_t>(work.row_terms == nullptr ? 0 : work.row_terms[row]);
  const std::int8_t* w = work.panel + place * kGroup;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    const RowElement* x = work.starts[row] + line * work.line_stride;
    for (std::int64_t k = 0; k < work.steps; ++k, w += kStepBytes<kVectors>) {
      for (int i = 0; i < kGroup; ++i) sum += static_cast<std::uint32_t>(x[k * kGroup + i] * w[i]);
    }
  }
  work.output[row * work.output_stride + column] =
      exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + column);
}

// found(row, column) for the results in doubt. Places are of one row of two vectors' columns each, or of two rows of
// one vector's in turn.
template <int kVectors, int kRows, int kCount, typename Found>
void for_each_doubt(const Places<kCount>& places, const Found& found) {
  for (int i = 0; i < kCount; ++i) {
    for (int j = 0; j < 2 * kLanes; ++j) {
      if (places.values[i][j] >= kSurePlaces) continue;
      kVectors == 2 ? found(i, j) : found(std::min(2 * i + j % 2, kRows - 1), j / 2);
    }
  }
}

template <int kVectors, int kRows, int kCount>
[[gnu::noinline, gnu::cold]] void fix_tile(const TileWork& work, const Places<kCount>& places) {
  for_each_doubt<kVectors, kRows>(places, [&](int row, int column) {
    if (column < work.columns) fix_result<kVectors>(work, row, column);
  });
}

// A vector of bytes: two rows of half of it each, of which there is at least the first.
template <bool kHasSecond>
[[gnu::always_inline]] inline void store_wide_rows(Ints packed, std::uint8_t* to, std::int64_t stride) {
  const Ints bytes = packed_in_order(packed);
  store_half(to, first_half(bytes));
  if constexpr (kHasSecond) store_half(to + stride, second_half(bytes));
}
// A vector of bytes: kCount rows, of up to four, in turn. (32 bytes: first columns 0 to 3, then 4 to 7.)
template <int kCount>
[[gnu::always_inline]] inline void store_narrow_rows(Ints packed, std::uint8_t* to, std::int64_t stride) {
  const Ints bytes = turns_undone(packed);
#if REEF_VECTOR_BYTES == 32
  const __m128i left = _mm256_castsi256_si128(bytes), right = _mm256_extracti128_si256(bytes, 1);
  const __m128i rows[2] = {_mm_unpacklo_epi32(left, right), _mm_unpackhi_epi32(left, right)};
  for_constants<kCount>([&](auto row) __attribute__((always_inline)) {
    const __m128i two = rows[row / 2];
    _mm_storel_epi64(reinterpret_cast<__m128i*>(to + row * stride), row % 2 == 0 ? two : _mm_unpackhi_epi64(two, two));
  });
#else
  for_constants<kCount>([&](auto row) __attribute__((always_inline)) {
    const std::int32_t four = _mm_extract_epi32(bytes, row);
    std::memcpy(to + row * stride, &four, sizeof four);
  });
#endif
}

// kRows rows of sums to bytes, `stride` apart; all columns of the vectors are written. Calls nothing, and neither may
// the caller before: sums would lie in memory all the time.
template <int kRows, int kVectors, bool kSigned, bool kPlain>
[[gnu::always_inline]] inline auto finish_tile(const ByteScaling& scaling, std::int64_t slot,
                                               const Ints (&sums)[kRows][kVectors], std::uint8_t* to,
                                               std::int64_t stride) {
  constexpr int kRowsOfWords = 2 / kVectors, kCount = (kRows + kRowsOfWords - 1) / kRowsOfWords;
  const ScaleVectors by[2] = {load_scale(scaling, slot), load_scale(scaling, slot + (kVectors - 1) * kLanes)};
  const ByteLimits limits = load_limits(scaling);
  Places<kCount> places;
  const auto words_of = [&](auto index) __attribute__((always_inline)) {
    constexpr int kRow = index * kRowsOfWords, kNext = kVectors == 2 || kRow + 1 >= kRows ? kRow : kRow + 1;
    const Ints a = scale<kPlain>(sums[kRow][0], by[0]);
    const Ints b = scale<kPlain>(sums[kNext][kVectors - 1], by[1]);
    places.set(index, places_in_turn(a, b));
    return results_in_turn(a, b);
  };
  for_constants<(kCount + 1) / 2>([&](auto pair) __attribute__((always_inline)) {
    constexpr int kFirst = 2 * pair, kSecond = std::min(kFirst + 1, kCount - 1);
    const Ints first = words_of(std::integral_constant<int, kFirst>());
    const Ints second = kFirst == kSecond ? first : words_of(std::integral_constant<int, kSecond>());
    const Ints bytes = limited_bytes<kSigned, kPlain>(limits, first, second);
    std::uint8_t* const at = to + kFirst * kRowsOfWords * stride;
    if constexpr (kVectors == 2) {
      store_wide_rows<kFirst != kSecond>(bytes, at, stride);
    } else {
      store_narrow_rows<std::min(kRows - kFirst * kRowsOfWords, 4)>(bytes, at, stride);
    }
  });
  return places;
}

// The columns that there are, of rows of 2 * kLanes bytes.
[[gnu::noinline]] void copy_rows(const std::uint8_t* from, int rows, std::int64_t columns, std::uint8_t* to,
                                 std::int64_t stride) {
  for (int r = 0; r < rows; ++r) std::memcpy(to + r * stride, from + r * 2 * kLanes, static_cast<std::size_t>(columns));
}

// Adds all products of a tile.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void add_tile_products(const TileWork& work, Ints (&sums)[kRows][kVectors]) {
  const RowElement* x[kRows];
  const std::int64_t length = work.steps * kGroup;
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) { x[row] = work.starts[row] + length; });
  const std::int8_t* w = work.panel;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    for (std::int64_t at = -length; at != 0; at += kGroup, w += kStepBytes<kVectors>) {
      const Ints first = load_weights(w);
      if constexpr (kVectors == 2) {
        const Ints second = load_weights(w + kLanes * kGroup);
        for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
          add_products(sums[row][0], sums[row][1], x[row] + at, first, second);
        });
      } else {
        for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
          add_dots(sums[row][0], broadcast_group(x[row] + at), first);
        });
      }
    }
    for_constants<kRows>([&](auto row) __attribute__((always_inline)) { x[row] += work.line_stride; });
  }
}

// The sums themselves, whole vectors of columns, in order.
template <int kRows, int kVectors>
void sum_tile(const TileWork& work) {
  Ints sums[kRows][kVectors];
  for_constants<kRows * kVectors>([&](auto i) __attribute__((always_inline)) {
    sums[i / kVectors][i % kVectors] = zero_ints();
  });
  add_tile_products<kRows, kVectors>(work, sums);
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    std::int32_t* const to = work.sums + row * work.sums_stride;
    if constexpr (kVectors == 2) {
      const Ints low = REEF_MM(unpacklo_epi32)(sums[row][0], sums[row][1]);
      const Ints high = REEF_MM(unpackhi_epi32)(sums[row][0], sums[row][1]);
#if REEF_VECTOR_BYTES == 32
      store_ints(to, _mm256_permute2x128_si256(low, high, 0x20));
      store_ints(to + kLanes, _mm256_permute2x128_si256(low, high, 0x31));
#else
      store_ints(to, low);
      store_ints(to + kLanes, high);
#endif
    } else {
      store_ints(to, sums[row][0]);
    }
  });
}

template <int kRows, int kVectors, bool kSigned, bool kPlain>
void multiply_tile(const TileWork& work) {
  Ints sums[kRows][kVectors];
  const std::int32_t* start = work.scaling->start.data() + work.slot;
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    for_constants<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[row][v] = load_ints(start + v * kLanes);
      if (work.row_terms != nullptr) {
        sums[row][v] = REEF_MM(add_epi32)(sums[row][v], REEF_MM(set1_epi32)(work.row_terms[row]));
      }
    });
  });
  add_tile_products<kRows, kVectors>(work, sums);
  const bool is_whole = work.columns == kVectors * kLanes;
  alignas(32) std::uint8_t part[kRows][2 * kLanes];
  const auto places = finish_tile<kRows, kVectors, kSigned, kPlain>(
      *work.scaling, work.slot, sums, is_whole ? work.output : part[0], is_whole ? work.output_stride : 2 * kLanes);
  if (!is_whole) [[unlikely]]
    copy_rows(part[0], kRows, work.columns, work.output, work.output_stride);
  if (!places.all_sure()) [[unlikely]]
    fix_tile<kVectors, kRows>(work, places);
}

#include "kernels/matmul/byte_tile_rows_body.h"

template <int kVectors>
void sum_rows_of_panel(TileWork work, std::int64_t count) {
  constexpr int kMost = kTileRows<kVectors>;
  for (; count >= kMost; count -= kMost) {
    sum_tile<kMost, kVectors>(work);
    work.starts += kMost;
    work.sums += kMost * work.sums_stride;
  }
  for_constants<kMost - 1>([&](auto index) __attribute__((always_inline)) {
    if (count == index + 1) sum_tile<index + 1, kVectors>(work);
  });
}
void sum_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  vectors == 1 ? sum_rows_of_panel<1>(work, count) : sum_rows_of_panel<2>(work, count);
}

// One row by kPanels whole panels: weights are read once, so several streams of them keep the loads busy.
template <int kPanels, bool kSigned, bool kPlain>
void multiply_one_row(const TileWork& work) {
  Ints sums[kPanels][1][2];
  const std::int64_t panel_bytes = work.lines * work.steps * kStepBytes<2>;
  const std::int32_t* start = work.scaling->start.data() + work.slot;
  const Ints term = REEF_MM(set1_epi32)(work.row_terms == nullptr ? 0 : work.row_terms[0]);
  for_constants<2 * kPanels>([&](auto i) __attribute__((always_inline)) {
    const Ints first = load_ints(start + i * kLanes);
    sums[i / 2][0][i % 2] = REEF_MM(add_epi32)(first, term);
  });
  const std::int8_t* w = work.panel;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    const RowElement* x = work.starts[0] + line * work.line_stride;
    for (std::int64_t k = 0; k < work.steps; ++k, w += kStepBytes<2>) {
      const Ints value = broadcast_group(x + k * kGroup);
      for_constants<2 * kPanels>([&](auto i) __attribute__((always_inline)) {
        const Ints weights = load_weights(w + i / 2 * panel_bytes + i % 2 * kLanes * kGroup);
        add_dots(sums[i / 2][0][i % 2], value, weights);
      });
    }
  }
  for_constants<kPanels>([&](auto p) __attribute__((always_inline)) {
    const auto places = finish_tile<1, 2, kSigned, kPlain>(*work.scaling, work.slot + p * 2 * kLanes, sums[p],
                                                           work.output + p * 2 * kLanes, 0);
    if (!places.all_sure()) [[unlikely]] {
      TileWork of_panel = work;
      of_panel.panel += p * panel_bytes;
      of_panel.slot += p * 2 * kLanes;
      of_panel.channel += p * 2 * kLanes;
      of_panel.output += p * 2 * kLanes;
      fix_tile<2, 1>(of_panel, places);
    }
  });
}

template <bool kSigned, bool kPlain>
std::int64_t multiply_one_row(TileWork work, std::int64_t panels) {
  constexpr int kMost = 4;
  const std::int64_t panel_bytes = work.lines * work.steps * kStepBytes<2>, all = panels;
  const auto advance = [&](std::int64_t count) {
    work.panel += count * panel_bytes;
    work.slot += count * 2 * kLanes;
    work.channel += count * 2 * kLanes;
    work.output += count * 2 * kLanes;
    panels -= count;
  };
  while (panels >= kMost) {
    multiply_one_row<kMost, kSigned, kPlain>(work);
    advance(kMost);
  }
  while (panels >= 2) {
    multiply_one_row<2, kSigned, kPlain>(work);
    advance(2);
  }
  return all - panels;
}

// One row by whole panels, one after the other; returns how many were done.
std::int64_t multiply_row(const TileWork& work, std::int64_t panels) {
  const bool is_plain = work.scaling->is_plain;
  if (work.is_signed) {
    return is_plain ? multiply_one_row<true, true>(work, panels) : multiply_one_row<true, false>(work, panels);
  }
  return is_plain ? multiply_one_row<false, true>(work, panels) : multiply_one_row<false, false>(work, panels);
}

// The sums of one row by several panels: nothing is better than sum_panel.
std::int64_t sum_row(const TileWork&, std::int64_t) { return 0; }

// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h for 64-bit ARM: rows of signed bytes, four sums in a vector. With dot products
// (REEF_DOTPROD) one instruction adds four products to each of four sums. Without, products are added to the sums in
// pairs, from 16 bits to 32; before that each product gets another one in its 16 bits. Two fit unless both are -128 by
// -128, so panels with weights of -128 go without. No include guard: it is included between brackets, see
// simd/targets.h.

using RowElement = std::int8_t;
constexpr int kGroup = REEF_DOTPROD ? 4 : 2;

#include "kernels/matmul/byte_tile_work_body.h"

#include "kernels/matmul/byte_scaling_neon_body.h"

template <int kQuads>
constexpr int kTileRows = kQuads == 2 ? 8 : 4;
// Bytes of a panel per group of products.
template <int kQuads>
constexpr int kStep = kQuads* kQuad* kGroup;

#if REEF_DOTPROD
// Four products of group kIndex of a row's 16 elements to each of four sums. In assembler, so that the sums stay where
// they are: gcc 12 moves what its own function returns to another register.
template <int kIndex>
[[gnu::always_inline]] inline void add_dots(int8x16_t w, int8x16_t x, int32x4_t& sums) {
  asm("sdot %0.4s, %1.16b, %2.4b[%3]" : "+w"(sums) : "w"(w), "w"(x), "i"(kIndex));
}

// Products of `length` elements of each row with a line of the panel; returns where the panel's next begins.
template <int kRows, int kQuads, bool>
[[gnu::always_inline]] inline const std::int8_t* add_line(const RowElement* (&x)[kRows], std::int64_t length,
                                                          const std::int8_t* w, int32x4_t (&sums)[kRows][kQuads]) {
  for (; length >= 16; length -= 16, w += 4 * kStep<kQuads>) {
    int8x16_t values[kRows];
    for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
      values[r] = vld1q_s8(x[r]);
      x[r] += 16;
    });
    for_constants<4 * kQuads>([&](auto i) __attribute__((always_inline)) {
      constexpr int kGroupIndex = decltype(i)::value / kQuads, kQ = decltype(i)::value % kQuads;
      const int8x16_t weights = vld1q_s8(w + i * 16);
      for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
        add_dots<kGroupIndex>(weights, values[r], sums[r][kQ]);
      });
    });
  }
  for (; length > 0; length -= kGroup, w += kStep<kQuads>) {
    for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
      std::int32_t group;
      std::memcpy(&group, x[r], sizeof group);
      x[r] += kGroup;
      const int8x16_t value = vreinterpretq_s8_s32(vdupq_n_s32(group));
      for_constants<kQuads>([&](auto q) __attribute__((always_inline)) {
        sums[r][q] = vdotq_s32(sums[r][q], vld1q_s8(w + q * 16), value);
      });
    });
  }
  return w;
}
#else
// The next two elements of a row, eight times; the row moves on. In assembler, because gcc 12 would take the way
// through a general register.
[[gnu::always_inline]] inline int8x16_t next_pair(const RowElement*& x) {
  int8x16_t pairs;
  asm("ld1r {%0.8h}, [%1], #2" : "=w"(pairs), "+r"(x) : "m"(*reinterpret_cast<const std::int8_t(*)[2]>(x)));
  return pairs;
}

// A pair of products of each of eight columns, to their sums.
[[gnu::always_inline]] inline void add_pair(int8x16_t x, int8x16_t w, int32x4_t& sums, int32x4_t& next_sums) {
  sums = vpadalq_s16(sums, vmull_s8(vget_low_s8(x), vget_low_s8(w)));
  next_sums = vpadalq_s16(next_sums, vmull_high_s8(x, w));
}
// Two pairs each; no weight is -128. In assembler, because gcc 12 would begin with all rows' products at once and run
// out of registers.
[[gnu::always_inline]] inline void add_two_pairs(int8x16_t x0, int8x16_t x1, const int8x16_t (&w0)[1],
                                                 const int8x16_t (&w1)[1], int32x4_t (&sums)[2]) {
  int16x8_t low, high;
  asm("smull %0.8h, %4.8b, %6.8b\n\t"
      "smull2 %1.8h, %4.16b, %6.16b\n\t"
      "smlal %0.8h, %5.8b, %7.8b\n\t"
      "smlal2 %1.8h, %5.16b, %7.16b\n\t"
      "sadalp %2.4s, %0.8h\n\t"
      "sadalp %3.4s, %1.8h"
      : "=&w"(low), "=&w"(high), "+w"(sums[0]), "+w"(sums[1])
      : "w"(x0), "w"(x1), "w"(w0[0]), "w"(w1[0]));
}
[[gnu::always_inline]] inline void add_two_pairs(int8x16_t x0, int8x16_t x1, const int8x16_t (&w0)[2],
                                                 const int8x16_t (&w1)[2], int32x4_t (&sums)[4]) {
  int16x8_t a, b, c, d;
  asm("smull %0.8h, %8.8b, %10.8b\n\t"
      "smull2 %1.8h, %8.16b, %10.16b\n\t"
      "smull %2.8h, %8.8b, %11.8b\n\t"
      "smull2 %3.8h, %8.16b, %11.16b\n\t"
      "smlal %0.8h, %9.8b, %12.8b\n\t"
      "smlal2 %1.8h, %9.16b, %12.16b\n\t"
      "smlal %2.8h, %9.8b, %13.8b\n\t"
      "smlal2 %3.8h, %9.16b, %13.16b\n\t"
      "sadalp %4.4s, %0.8h\n\t"
      "sadalp %5.4s, %1.8h\n\t"
      "sadalp %6.4s, %2.8h\n\t"
      "sadalp %7.4s, %3.8h"
      : "=&w"(a), "=&w"(b), "=&w"(c), "=&w"(d), "+w"(sums[0]), "+w"(sums[1]), "+w"(sums[2]), "+w"(sums[3])
      : "w"(x0), "w"(x1), "w"(w0[0]), "w"(w0[1]), "w"(w1[0]), "w"(w1[1]));
}

// Products of `length` elements of each row with a line of the panel; returns where the panel's next begins.
template <int kRows, int kQuads, bool kHasLowest>
[[gnu::always_inline]] inline const std::int8_t* add_line(const RowElement* (&x)[kRows], std::int64_t length,
                                                          const std::int8_t* w, int32x4_t (&sums)[kRows][kQuads]) {
  constexpr int kEights = kQuads / 2;
  for (; !kHasLowest && length >= 2 * kGroup; length -= 2 * kGroup, w += 2 * kStep<kQuads>) {
    int8x16_t first[kEights], second[kEights];
    for_constants<kEights>([&](auto e) __attribute__((always_inline)) {
      first[e] = vld1q_s8(w + e * 16);
      second[e] = vld1q_s8(w + kStep<kQuads> + e * 16);
    });
    for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
      const int8x16_t x0 = next_pair(x[r]), x1 = next_pair(x[r]);
      add_two_pairs(x0, x1, first, second, sums[r]);
    });
  }
  for (; length > 0; length -= kGroup, w += kStep<kQuads>) {
    for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
      const int8x16_t value = next_pair(x[r]);
      for_constants<kEights>([&](auto e) __attribute__((always_inline)) {
        add_pair(value, vld1q_s8(w + e * 16), sums[r][2 * e], sums[r][2 * e + 1]);
      });
    });
  }
  return w;
}
#endif

// Adds all products of a tile.
template <int kRows, int kQuads, bool kHasLowest>
[[gnu::always_inline]] inline void add_tile_products(const TileWork& work, int32x4_t (&sums)[kRows][kQuads]) {
  const RowElement* x[kRows];
  for_constants<kRows>([&](auto r) __attribute__((always_inline)) { x[r] = work.starts[r]; });
  const std::int8_t* w = work.panel;
  const std::int64_t length = work.steps * kGroup;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    w = add_line<kRows, kQuads, kHasLowest>(x, length, w, sums);
    for_constants<kRows>([&](auto r) __attribute__((always_inline)) { x[r] += work.line_stride - length; });
  }
}

template <int kRows, int kQuads, bool kHasLowest>
void multiply_tile(const TileWork& work) {
  int32x4_t sums[kRows][kQuads];
  const std::int32_t* start = work.scaling->start.data() + work.channel;
  for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
    const int32x4_t term = vdupq_n_s32(work.row_terms == nullptr ? 0 : work.row_terms[r]);
    for_constants<kQuads>([&](auto q) __attribute__((always_inline)) {
      sums[r][q] = vaddq_s32(vld1q_s32(start + q * kQuad), term);
    });
  });
  add_tile_products<kRows, kQuads, kHasLowest>(work, sums);
  // Copied, so that the sums above can stay in registers: what others see must lie in memory.
  int32x4_t finished[kRows][kQuads];
  for_constants<kRows>([&](auto r) __attribute__((always_inline)) {
    for_constants<kQuads>([&](auto q) __attribute__((always_inline)) { finished[r][q] = sums[r][q]; });
  });
  finish_rows<kRows, kQuads>(
      {work.scaling, work.channel, work.channel, work.columns, work.output, work.output_stride, work.is_signed},
      finished);
}

// The sums themselves, whole vectors of columns.
template <int kRows, int kQuads, bool kHasLowest>
void sum_tile(const TileWork& work) {
  int32x4_t sums[kRows][kQuads];
  for_constants<kRows * kQuads>([&](auto i)
                                    __attribute__((always_inline)) { sums[i / kQuads][i % kQuads] = vdupq_n_s32(0); });
  add_tile_products<kRows, kQuads, kHasLowest>(work, sums);
  for_constants<kRows * kQuads>([&](auto i) __attribute__((always_inline)) {
    vst1q_s32(work.sums + i / kQuads * work.sums_stride + i % kQuads * kQuad, sums[i / kQuads][i % kQuads]);
  });
}

// All rows: tiles of the usual number of rows, then smaller ones. kIsSums: not bytes.
template <int kQuads, bool kHasLowest, bool kIsSums>
void multiply_rows(TileWork work, std::int64_t count) {
  const auto advance = [&](auto rows) {
    if constexpr (kIsSums) {
      sum_tile<rows, kQuads, kHasLowest>(work);
    } else {
      multiply_tile<rows, kQuads, kHasLowest>(work);
    }
    work.starts += rows;
    if (work.row_terms != nullptr) work.row_terms += rows;
    work.output += rows * work.output_stride;
    work.sums += rows * work.sums_stride;
    count -= rows;
  };
  while (count >= kTileRows<kQuads>) advance(std::integral_constant<int, kTileRows<kQuads>>());
  while (count >= 2) advance(std::integral_constant<int, 2>());
  if (count > 0) advance(std::integral_constant<int, 1>());
}

// eights: vectors of 8 columns, 1 or 2.
template <bool kIsSums>
void multiply_or_sum(const TileWork& work, std::int64_t eights, std::int64_t count) {
#if !REEF_DOTPROD
  if (work.has_lowest) {
    return eights == 1 ? multiply_rows<2, true, kIsSums>(work, count) : multiply_rows<4, true, kIsSums>(work, count);
  }
#endif
  eights == 1 ? multiply_rows<2, false, kIsSums>(work, count) : multiply_rows<4, false, kIsSums>(work, count);
}
void multiply_panel(const TileWork& work, std::int64_t eights, std::int64_t count) {
  multiply_or_sum<false>(work, eights, count);
}
void sum_panel(const TileWork& work, std::int64_t eights, std::int64_t count) {
  multiply_or_sum<true>(work, eights, count);
}

// One row by several panels: nothing is better than multiply_panel.
std::int64_t multiply_row(const TileWork&, std::int64_t) { return 0; }

// The sums of one row by several panels: nothing is better than sum_panel.
std::int64_t sum_row(const TileWork&, std::int64_t) { return 0; }

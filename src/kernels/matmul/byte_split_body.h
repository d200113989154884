// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/byte_panels.h for SSE4 and AVX2 and weights that matmul/byte_split.h has split: rows of
// unsigned bytes, two products at a time in 16 bits, which are added up in registers for a block of steps and then go
// to 32 bits, in memory. Twice as many products a cycle as with 16-bit rows. No include guard: it is included in a
// namespace of its own after byte_panels_body.h, whose scaling it uses.

using RowElement = std::uint8_t;
constexpr int kGroup = 4;

#include "kernels/matmul/byte_tile_work_body.h"

template <int kVectors>
constexpr int kStepBytes = kVectors* kLanes* kGroup;

[[gnu::always_inline]] inline Ints load_weights(const std::int8_t* from) { return load_ints(from); }

// Four of a row's elements by two vectors of weights. In assembler: 12 vectors of sums, two of weights and the two used
// here are all the registers there are. kIsFirst: the sums begin with these products.
template <bool kIsFirst>
[[gnu::always_inline]] inline void add_products(Ints& sums0, Ints& sums1, const RowElement* four, Ints w0, Ints w1) {
  const auto& memory = *reinterpret_cast<const RowElement(*)[kGroup]>(four);
#if REEF_VECTOR_BYTES == 32
  Ints value, product;
  if constexpr (kIsFirst) {
    asm("vpbroadcastd %[four], %[value]\n\t"
        "vpmaddubsw %[w0], %[value], %[sums0]\n\t"
        "vpmaddubsw %[w1], %[value], %[sums1]"
        : [sums0] "=&x"(sums0), [sums1] "=&x"(sums1), [value] "=&x"(value)
        : [four] "m"(memory), [w0] "x"(w0), [w1] "x"(w1));
  } else {
    asm("vpbroadcastd %[four], %[value]\n\t"
        "vpmaddubsw %[w0], %[value], %[product]\n\t"
        "vpmaddubsw %[w1], %[value], %[value]\n\t"
        "vpaddw %[product], %[sums0], %[sums0]\n\t"
        "vpaddw %[value], %[sums1], %[sums1]"
        : [sums0] "+x"(sums0), [sums1] "+x"(sums1), [value] "=&x"(value), [product] "=&x"(product)
        : [four] "m"(memory), [w0] "x"(w0), [w1] "x"(w1));
  }
#else
  if constexpr (kIsFirst) {
    asm("movd %[four], %[sums1]\n\t"
        "pshufd $0, %[sums1], %[sums1]\n\t"
        "movdqa %[sums1], %[sums0]\n\t"
        "pmaddubsw %[w0], %[sums0]\n\t"
        "pmaddubsw %[w1], %[sums1]"
        : [sums0] "=&x"(sums0), [sums1] "=&x"(sums1)
        : [four] "m"(memory), [w0] "x"(w0), [w1] "x"(w1));
  } else {
    Ints value, product;
    asm("movd %[four], %[value]\n\t"
        "pshufd $0, %[value], %[value]\n\t"
        "movdqa %[value], %[product]\n\t"
        "pmaddubsw %[w0], %[product]\n\t"
        "pmaddubsw %[w1], %[value]\n\t"
        "paddw %[product], %[sums0]\n\t"
        "paddw %[value], %[sums1]"
        : [sums0] "+x"(sums0), [sums1] "+x"(sums1), [value] "=&x"(value), [product] "=&x"(product)
        : [four] "m"(memory), [w0] "x"(w0), [w1] "x"(w1));
  }
#endif
}
[[gnu::always_inline]] inline Ints products_of(const RowElement* four, Ints w) {
  std::int32_t all;
  std::memcpy(&all, four, sizeof all);
  return REEF_MM(maddubs_epi16)(REEF_MM(set1_epi32)(all), w);
}
[[gnu::always_inline]] inline Ints add_words(Ints sums, Ints words) {
  return REEF_MM(add_epi32)(sums, REEF_MM(madd_epi16)(words, REEF_MM(set1_epi16)(1)));
}

// One step of all rows, from element `at` on.
template <bool kIsFirst, int kRows, int kVectors>
[[gnu::always_inline]] inline void add_step(const RowElement* const (&x)[kRows], std::int64_t at, const std::int8_t* w,
                                            Ints (&words)[kRows][kVectors]) {
  const Ints first = load_weights(w);
  if constexpr (kVectors == 2) {
    const Ints second = load_weights(w + kLanes * kGroup);
    for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
      add_products<kIsFirst>(words[row][0], words[row][1], x[row] + at, first, second);
    });
  } else {
    for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
      const Ints products = products_of(x[row] + at, first);
      words[row][0] = kIsFirst ? products : REEF_MM(add_epi16)(words[row][0], products);
    });
  }
}

// One result that floats cannot tell: its sum again, then the reference's function.
template <int kVectors>
void fix_result(const TileWork& work, std::int64_t row, std::int64_t column) {
  const std::int64_t place = kVectors == 2 ? column % 2 * kLanes + column / 2 : column;
  std::uint32_t sum = static_cast<std::uint32_t>(work.scaling->start[static_cast<std::size_t>(work.slot + place)]);
  const auto add = [&](const RowElement* x, const std::int8_t* w) {
    for (int i = 0; i < kGroup; ++i) sum += static_cast<std::uint32_t>(x[i] * w[place * kGroup + i]);
  };
  for (std::int64_t line = 0; line < work.lines; ++line) {
    for (std::int64_t k = 0; k < work.steps; ++k) {
      add(work.starts[row] + line * work.line_stride + k * kGroup,
          work.panel + (line * work.steps + k) * kStepBytes<kVectors>);
    }
  }
  for (std::int64_t i = 0; i < work.split.extra_steps; ++i) {
    const ExtraStep step = work.split.extra[i];
    add(work.starts[row] + step.line * work.line_stride + step.step * kGroup,
        work.split.extra_values + i * kStepBytes<kVectors>);
  }
  work.output[row * work.output_stride + column] =
      exact_byte(*work.scaling->exact, static_cast<std::int32_t>(sum), work.channel + column);
}

template <int kVectors, int kRows, int kCount>
[[gnu::noinline, gnu::cold]] void fix_tile(const TileWork& work, const Places<kCount>& places) {
  for_each_doubt<kVectors, kRows>(places, [&](int row, int column) {
    if (column < work.columns) fix_result<kVectors>(work, row, column);
  });
}

template <int kRows, int kVectors, bool kSigned, bool kPlain>
void multiply_tile(const TileWork& work) {
  alignas(32) std::int32_t totals[kRows][kVectors][kLanes];  // in memory: registers are for the sums of 16 bits
  const std::int32_t* start = work.scaling->start.data() + work.slot;
  const RowElement* x[kRows];
  for_constants<kRows>([&](auto row) __attribute__((always_inline)) {
    x[row] = work.starts[row];
    std::memcpy(totals[row], start, sizeof totals[row]);
  });
  const std::int8_t* w = work.panel;
  for (std::int64_t line = 0; line < work.lines; ++line) {
    for (std::int64_t k = 0, end = 0; k < work.steps; k = end) {
      end = std::min(k + work.split.block_steps, work.steps);
      Ints words[kRows][kVectors];
      add_step<true>(x, k * kGroup, w, words);
      w += kStepBytes<kVectors>;
      for (std::int64_t at = (k + 1) * kGroup; at < end * kGroup; at += kGroup, w += kStepBytes<kVectors>)
        add_step<false>(x, at, w, words);
      for_constants<kRows * kVectors>([&](auto i) __attribute__((always_inline)) {
        std::int32_t* const total = totals[i / kVectors][i % kVectors];
        store_ints(total, add_words(load_ints(total), words[i / kVectors][i % kVectors]));
      });
      asm volatile("" : : "r"(totals) : "memory");  // they stay there
    }
    for_constants<kRows>([&](auto row) __attribute__((always_inline)) { x[row] += work.line_stride; });
  }
  Ints sums[kRows][kVectors];
  for_constants<kRows * kVectors>([&](auto i) __attribute__((always_inline)) {
    sums[i / kVectors][i % kVectors] = load_ints(totals[i / kVectors][i % kVectors]);
  });
  for (std::int64_t i = 0; i < work.split.extra_steps; ++i) {
    const ExtraStep step = work.split.extra[i];
    const std::int8_t* extra = work.split.extra_values + i * kStepBytes<kVectors>;
    for_constants<kRows * kVectors>([&](auto j) __attribute__((always_inline)) {
      const RowElement* four = work.starts[j / kVectors] + step.line * work.line_stride + step.step * kGroup;
      Ints& sum = sums[j / kVectors][j % kVectors];
      sum = add_words(sum, products_of(four, load_weights(extra + j % kVectors * kLanes * kGroup)));
    });
  }
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

// One row by several panels: nothing is better than multiply_panel.
std::int64_t multiply_row(const TileWork&, std::int64_t) { return 0; }
// Weights whose sums are wanted are not split.
void sum_panel(const TileWork&, std::int64_t, std::int64_t) {}

// The sums of one row by several panels: nothing is better than sum_panel.
std::int64_t sum_row(const TileWork&, std::int64_t) { return 0; }

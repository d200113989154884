// SPDX-License-Identifier: Apache-2.0
#include "execute/device/cell_products.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace reef::device {

void add_cell_products_reference(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                                 std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  const std::ptrdiff_t width = padded_cells(cells);
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    for (std::ptrdiff_t p = 0; p < pairs; ++p) {
      const std::int32_t x0 = inputs[2 * (r * pairs + p)], x1 = inputs[2 * (r * pairs + p) + 1];
      const std::int16_t* w = weights + 2 * width * p;
      for (std::ptrdiff_t c = 0; c < width; ++c) {
        const auto product = static_cast<std::uint32_t>(x0 * w[2 * c] + x1 * w[2 * c + 1]);
        sums[r * width + c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[r * width + c]) + product);
      }
    }
  }
}

#if defined(__x86_64__)
namespace {

// `kBlocks` blocks of 8 cells, one row.
template <int kBlocks>
__attribute__((target("avx2"))) void row_avx2(const std::int16_t* weights, const std::int16_t* input,
                                              std::ptrdiff_t pairs, std::ptrdiff_t width, std::int32_t* sums) {
  __m256i acc[kBlocks];
  for (int b = 0; b < kBlocks; ++b) acc[b] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + 8 * b));
  for (std::ptrdiff_t p = 0; p < pairs; ++p) {
    std::int32_t pair;
    std::memcpy(&pair, input + 2 * p, 4);
    const __m256i x = _mm256_set1_epi32(pair);
    const std::int16_t* w = weights + 2 * width * p;
    for (int b = 0; b < kBlocks; ++b) {
      const __m256i line = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + 16 * b));
      acc[b] = _mm256_add_epi32(acc[b], _mm256_madd_epi16(line, x));
    }
  }
  for (int b = 0; b < kBlocks; ++b) _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 8 * b), acc[b]);
}

// The same with half the width, which every x86-64 has.
template <int kBlocks>
void row_sse2(const std::int16_t* weights, const std::int16_t* input, std::ptrdiff_t pairs, std::ptrdiff_t width,
              std::int32_t* sums) {
  __m128i acc[2 * kBlocks];
  for (int b = 0; b < 2 * kBlocks; ++b) acc[b] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(sums + 4 * b));
  for (std::ptrdiff_t p = 0; p < pairs; ++p) {
    std::int32_t pair;
    std::memcpy(&pair, input + 2 * p, 4);
    const __m128i x = _mm_set1_epi32(pair);
    const std::int16_t* w = weights + 2 * width * p;
    for (int b = 0; b < 2 * kBlocks; ++b) {
      const __m128i line = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w + 8 * b));
      acc[b] = _mm_add_epi32(acc[b], _mm_madd_epi16(line, x));
    }
  }
  for (int b = 0; b < 2 * kBlocks; ++b) _mm_storeu_si128(reinterpret_cast<__m128i*>(sums + 4 * b), acc[b]);
}

using RowFunction = void (*)(const std::int16_t*, const std::int16_t*, std::ptrdiff_t, std::ptrdiff_t, std::int32_t*);

// Rows of any width in pieces that stay in registers.
void all_rows(RowFunction four, RowFunction one, const std::int16_t* weights, const std::int16_t* inputs,
              std::ptrdiff_t rows, std::ptrdiff_t pairs, std::ptrdiff_t width, std::int32_t* sums) {
  for (std::ptrdiff_t c = 0; c < width;) {
    const bool is_wide = width - c >= 32;
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
      (is_wide ? four : one)(weights + 2 * c, inputs + 2 * r * pairs, pairs, width, sums + r * width + c);
    }
    c += is_wide ? 32 : 8;
  }
}

}  // namespace

void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  const std::ptrdiff_t width = padded_cells(cells);
  if (has_avx2) {
    all_rows(row_avx2<4>, row_avx2<1>, weights, inputs, rows, pairs, width, sums);
  } else {
    all_rows(row_sse2<4>, row_sse2<1>, weights, inputs, rows, pairs, width, sums);
  }
}
#else
void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  add_cell_products_reference(weights, inputs, rows, pairs, cells, sums);
}
#endif

}  // namespace reef::device

// SPDX-License-Identifier: Apache-2.0
#include "execute/device/cell_products.h"

#include <cstring>

#include "execute/device/vector_code.h"

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

void add_line_products_reference(const std::uint8_t* const* lines, const std::int32_t* zeros,
                                 const std::int16_t* inputs, std::ptrdiff_t rows, std::ptrdiff_t steps, int cells,
                                 std::int32_t* sums) {
  const std::ptrdiff_t width = padded_cells(cells);
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    for (std::ptrdiff_t i = 0; i < 4 * steps; ++i) {
      const auto x = static_cast<std::uint32_t>(std::int32_t{inputs[4 * r * steps + i]});
      for (std::ptrdiff_t c = 0; c < width; ++c) {
        const std::uint32_t w = lines[i / 4][4 * c + i % 4] - static_cast<std::uint32_t>(zeros[c]);
        sums[r * width + c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[r * width + c]) + x * w);
      }
    }
  }
}

void add_wide_products_reference(const std::int32_t* weights, const std::int32_t* inputs, std::ptrdiff_t rows,
                                 std::ptrdiff_t operands, int cells, std::int32_t* sums) {
  const std::ptrdiff_t width = padded_cells(cells);
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    for (std::ptrdiff_t k = 0; k < operands; ++k) {
      const auto x = static_cast<std::uint32_t>(inputs[r * operands + k]);
      for (std::ptrdiff_t c = 0; c < width; ++c) {
        const std::uint32_t product = x * static_cast<std::uint32_t>(weights[k * width + c]);
        sums[r * width + c] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sums[r * width + c]) + product);
      }
    }
  }
}

namespace {

REEF_VECTOR_BODY void wide_body(const std::int32_t* weights, const std::int32_t* inputs, std::ptrdiff_t rows,
                                std::ptrdiff_t operands, std::ptrdiff_t width, std::int32_t* sums) {
  using Words = std::uint32_t __attribute__((vector_size(16)));
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    const std::int32_t* x = inputs + r * operands;
    for (std::ptrdiff_t c = 0; c < width; c += kCellBlock) {
      Words sum;
      std::memcpy(&sum, sums + r * width + c, sizeof(sum));
      for (std::ptrdiff_t k = 0; k < operands; ++k) {
        Words w;
        std::memcpy(&w, weights + k * width + c, sizeof(w));
        sum += w * static_cast<std::uint32_t>(x[k]);
      }
      std::memcpy(sums + r * width + c, &sum, sizeof(sum));
    }
  }
}

}  // namespace

void add_wide_products(const std::int32_t* weights, const std::int32_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t operands, int cells, std::int32_t* sums) {
  for_this_processor<wide_body>(weights, inputs, rows, operands, std::ptrdiff_t{padded_cells(cells)}, sums);
}

#if defined(__x86_64__)
namespace {

// The operands of one call: weights from a column on, inputs and sums from a row on.
struct Block {
  const std::int16_t* weights;
  const std::int16_t* inputs;
  std::ptrdiff_t pairs, width;
  std::int32_t* sums;
};

__attribute__((always_inline)) inline std::int32_t pair_at(const std::int16_t* input) {
  std::int32_t pair;
  std::memcpy(&pair, input, 4);
  return pair;
}

// `kRows` rows of `kParts` times 8 cells, which stay in registers.
template <int kRows, int kParts>
REEF_AVX2 void add_block_avx2(const Block& b) {
  __m256i sums[kRows][kParts];
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kParts; ++i) {
      sums[r][i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.sums + r * b.width + 8 * i));
    }
  }
  for (std::ptrdiff_t p = 0; p < b.pairs; ++p) {
    __m256i weights[kParts];
    for (int i = 0; i < kParts; ++i) {
      weights[i] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b.weights + 2 * b.width * p + 16 * i));
    }
    for (int r = 0; r < kRows; ++r) {
      const __m256i x = _mm256_set1_epi32(pair_at(b.inputs + 2 * (r * b.pairs + p)));
      for (int i = 0; i < kParts; ++i) {
        sums[r][i] = _mm256_add_epi32(sums[r][i], _mm256_madd_epi16(weights[i], x));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kParts; ++i) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(b.sums + r * b.width + 8 * i), sums[r][i]);
    }
  }
}

// The same with parts of 4 cells, which every x86-64 can do.
template <int kRows, int kParts>
void add_block_sse2(const Block& b) {
  __m128i sums[kRows][kParts];
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kParts; ++i) {
      sums[r][i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.sums + r * b.width + 4 * i));
    }
  }
  for (std::ptrdiff_t p = 0; p < b.pairs; ++p) {
    __m128i weights[kParts];
    for (int i = 0; i < kParts; ++i) {
      weights[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.weights + 2 * b.width * p + 8 * i));
    }
    for (int r = 0; r < kRows; ++r) {
      const __m128i x = _mm_set1_epi32(pair_at(b.inputs + 2 * (r * b.pairs + p)));
      for (int i = 0; i < kParts; ++i) sums[r][i] = _mm_add_epi32(sums[r][i], _mm_madd_epi16(weights[i], x));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kParts; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(b.sums + r * b.width + 4 * i), sums[r][i]);
    }
  }
}

// The operands of one call: bytes from a column on, inputs and sums from a row on.
struct LineBlock {
  const std::uint8_t* const* lines;
  std::ptrdiff_t first_byte;
  const std::int16_t* inputs;
  std::ptrdiff_t steps, width;
  std::int32_t* sums;
};

__attribute__((always_inline)) inline std::int64_t quad_at(const std::int16_t* input) {
  std::int64_t quad;
  std::memcpy(&quad, input, 8);
  return quad;
}

// `kRows` rows of `kParts` times 4 cells. Two sums are kept for each cell, of operands 0 and 1, and of 2 and 3.
template <int kRows, int kParts>
REEF_AVX2 void add_lines_avx2(const LineBlock& b) {
  __m256i sums[kRows][kParts];
  for (auto& row : sums) {
    for (__m256i& sum : row) sum = _mm256_setzero_si256();
  }
  for (std::ptrdiff_t s = 0; s < b.steps; ++s) {
    const std::uint8_t* line = b.lines[s] + b.first_byte;
    __m256i weights[kParts];
    for (int i = 0; i < kParts; ++i) {
      weights[i] = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line + 16 * i)));
    }
    for (int r = 0; r < kRows; ++r) {
      const __m256i x = _mm256_set1_epi64x(quad_at(b.inputs + 4 * (r * b.steps + s)));
      for (int i = 0; i < kParts; ++i) {
        sums[r][i] = _mm256_add_epi32(sums[r][i], _mm256_madd_epi16(weights[i], x));
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kParts; ++i) {
      const __m256i halves = _mm256_hadd_epi32(sums[r][i], sums[r][i]);  // cells 0 1 0 1, 2 3 2 3
      const __m128i cells = _mm_unpacklo_epi64(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
      auto* to = reinterpret_cast<__m128i*>(b.sums + r * b.width + 4 * i);
      _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), cells));
    }
  }
}

// The same with vectors of half the size.
template <int kRows>
void add_lines_sse2(const LineBlock& b) {
  __m128i sums[kRows][2];
  for (auto& row : sums) row[0] = row[1] = _mm_setzero_si128();
  for (std::ptrdiff_t s = 0; s < b.steps; ++s) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.lines[s] + b.first_byte));
    const __m128i low = _mm_unpacklo_epi8(bytes, _mm_setzero_si128());
    const __m128i high = _mm_unpackhi_epi8(bytes, _mm_setzero_si128());
    for (int r = 0; r < kRows; ++r) {
      const __m128i x = _mm_set1_epi64x(quad_at(b.inputs + 4 * (r * b.steps + s)));
      sums[r][0] = _mm_add_epi32(sums[r][0], _mm_madd_epi16(low, x));
      sums[r][1] = _mm_add_epi32(sums[r][1], _mm_madd_epi16(high, x));
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const __m128 low = _mm_castsi128_ps(sums[r][0]), high = _mm_castsi128_ps(sums[r][1]);
    const __m128i first = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i second = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    auto* to = reinterpret_cast<__m128i*>(b.sums + r * b.width);
    _mm_storeu_si128(to, _mm_add_epi32(_mm_loadu_si128(to), _mm_add_epi32(first, second)));
  }
}

template <typename Block>
struct BlockFunctions {
  std::ptrdiff_t cells;        // of a block
  void (*four)(const Block&);  // rows
  void (*two)(const Block&);
  void (*single)(const Block&);
};
constexpr BlockFunctions<Block> kAvx2[] = {{16, add_block_avx2<4, 2>, add_block_avx2<2, 2>, add_block_avx2<1, 2>},
                                           {8, add_block_avx2<4, 1>, add_block_avx2<2, 1>, add_block_avx2<1, 1>},
                                           {4, add_block_sse2<4, 1>, add_block_sse2<2, 1>, add_block_sse2<1, 1>}};
constexpr BlockFunctions<Block> kSse2[] = {{8, add_block_sse2<4, 2>, add_block_sse2<2, 2>, add_block_sse2<1, 2>},
                                           {4, add_block_sse2<4, 1>, add_block_sse2<2, 1>, add_block_sse2<1, 1>}};
constexpr BlockFunctions<LineBlock> kLinesAvx2[] = {
    {8, add_lines_avx2<4, 2>, add_lines_avx2<2, 2>, add_lines_avx2<1, 2>},
    {4, add_lines_avx2<4, 1>, add_lines_avx2<2, 1>, add_lines_avx2<1, 1>}};
constexpr BlockFunctions<LineBlock> kLinesSse2[] = {{4, add_lines_sse2<4>, add_lines_sse2<2>, add_lines_sse2<1>}};

// Blocks of as many cells and rows as there are functions for.
template <typename Block, typename At>
void in_blocks(const BlockFunctions<Block>* functions, std::ptrdiff_t rows, std::ptrdiff_t width, const At& at) {
  for (std::ptrdiff_t c = 0; c < width;) {
    while (functions->cells > width - c) ++functions;
    for (std::ptrdiff_t r = 0; r < rows;) {
      const std::ptrdiff_t left = rows - r;
      (left >= 4 ? functions->four : left >= 2 ? functions->two : functions->single)(at(r, c));
      r += left >= 4 ? 4 : left >= 2 ? 2 : 1;
    }
    c += functions->cells;
  }
}

// sums[r][c] -= (sum of the row's inputs) * zeros[c]
REEF_VECTOR_BODY void subtract_zeros_body(const std::int32_t* zeros, const std::int16_t* inputs, std::ptrdiff_t rows,
                                          std::ptrdiff_t columns, std::ptrdiff_t width, std::int32_t* sums) {
  using Words = std::uint32_t __attribute__((vector_size(16)));
  for (std::ptrdiff_t r = 0; r < rows; ++r) {
    std::int32_t total = 0;
    for (std::ptrdiff_t k = 0; k < columns; ++k) total += inputs[r * columns + k];
    for (std::ptrdiff_t c = 0; c < width; c += kCellBlock) {
      Words zero, sum;
      std::memcpy(&zero, zeros + c, sizeof(zero));
      std::memcpy(&sum, sums + r * width + c, sizeof(sum));
      sum -= zero * static_cast<std::uint32_t>(total);
      std::memcpy(sums + r * width + c, &sum, sizeof(sum));
    }
  }
}

}  // namespace

void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  const std::ptrdiff_t width = padded_cells(cells);
  in_blocks<Block>(has_avx2() ? kAvx2 : kSse2, rows, width, [&](std::ptrdiff_t r, std::ptrdiff_t c) {
    return Block{weights + 2 * c, inputs + 2 * r * pairs, pairs, width, sums + r * width + c};
  });
}

void add_line_products(const std::uint8_t* const* lines, const std::int32_t* zeros, const std::int16_t* inputs,
                       std::ptrdiff_t rows, std::ptrdiff_t steps, int cells, std::int32_t* sums) {
  const std::ptrdiff_t width = padded_cells(cells);
  in_blocks<LineBlock>(has_avx2() ? kLinesAvx2 : kLinesSse2, rows, width, [&](std::ptrdiff_t r, std::ptrdiff_t c) {
    return LineBlock{lines, 4 * c, inputs + 4 * r * steps, steps, width, sums + r * width + c};
  });
  for_this_processor<subtract_zeros_body>(zeros, inputs, rows, 4 * steps, width, sums);
}
#else
void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  add_cell_products_reference(weights, inputs, rows, pairs, cells, sums);
}

void add_line_products(const std::uint8_t* const* lines, const std::int32_t* zeros, const std::int16_t* inputs,
                       std::ptrdiff_t rows, std::ptrdiff_t steps, int cells, std::int32_t* sums) {
  add_line_products_reference(lines, zeros, inputs, rows, steps, cells, sums);
}
#endif

}  // namespace reef::device

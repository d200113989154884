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

// What one call works on: weights from a column on, inputs and sums from a row on.
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

using BlockFunction = void (*)(const Block&);
struct BlockFunctions {
  std::ptrdiff_t cells;        // of a block
  BlockFunction four, single;  // rows
};
constexpr BlockFunctions kAvx2[] = {{16, add_block_avx2<4, 2>, add_block_avx2<1, 2>},
                                    {8, add_block_avx2<4, 1>, add_block_avx2<1, 1>},
                                    {4, add_block_sse2<4, 1>, add_block_sse2<1, 1>}};
constexpr BlockFunctions kSse2[] = {{8, add_block_sse2<4, 2>, add_block_sse2<1, 2>},
                                    {4, add_block_sse2<4, 1>, add_block_sse2<1, 1>}};

}  // namespace

void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  const std::ptrdiff_t width = padded_cells(cells);
  const BlockFunctions* functions = has_avx2() ? kAvx2 : kSse2;
  for (std::ptrdiff_t c = 0; c < width;) {
    while (functions->cells > width - c) ++functions;
    for (std::ptrdiff_t r = 0; r < rows;) {
      const bool are_four = rows - r >= 4;
      const Block block{weights + 2 * c, inputs + 2 * r * pairs, pairs, width, sums + r * width + c};
      (are_four ? functions->four : functions->single)(block);
      r += are_four ? 4 : 1;
    }
    c += functions->cells;
  }
}
#else
void add_cell_products(const std::int16_t* weights, const std::int16_t* inputs, std::ptrdiff_t rows,
                       std::ptrdiff_t pairs, int cells, std::int32_t* sums) {
  add_cell_products_reference(weights, inputs, rows, pairs, cells, sums);
}
#endif

}  // namespace reef::device

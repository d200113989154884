// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/float_panels.h for one target: REEF_LANES floats a vector, REEF_TILE_ROWS(vectors) rows a
// tile, fused multiply-adds if REEF_FUSED. No include guard: it is included once per target, see simd/targets.h.

#include "kernels/simd/float_vectors_body.h"

struct TileWork {
  const float* const* rows;  // [run][row], row_capacity apart
  std::int64_t row_capacity, runs, length;
  const float* panel;
  const float* bias;  // padded to whole vectors
  float lowest, highest;
  float* output;  // of the tile's first row and the panel's first column
  std::int64_t output_stride, columns;
};

// Sums of kRows rows, `stride` floats apart in memory, with bias and limits. What `work` says is read before anything
// is written, which might change it as far as the compiler knows.
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void finish_rows(const TileWork& work, const Vec (&sums)[kRows][kVectors], float* to,
                                               std::int64_t stride) {
  const Vec lowest = work.lowest - Vec{}, highest = work.highest - Vec{};
  Vec bias[kVectors];
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) bias[v] = *reinterpret_cast<const Vec*>(work.bias + v * REEF_LANES);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r, to += stride) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vec total = sums[r][v] + bias[v];
      const Vec raised = total < lowest ? lowest : total;  // NaN passes both
      *reinterpret_cast<Vec*>(to + v * REEF_LANES) = highest < raised ? highest : raised;
    }
  }
}

// One row by several whole panels, `panel_size` floats apart: sums of one alone would wait for each addition.
template <int kPanels>
void multiply_row(const TileWork& work, std::int64_t panel_size) {
  constexpr int kVectors = REEF_TILE_VECTORS;
  Vec sums[1][kPanels * kVectors] = {};
  const float* w = work.panel;
  for (std::int64_t run = 0; run < work.runs; ++run) {
    const float* x = work.rows[run * work.row_capacity];
    for (std::int64_t k = 0; k < work.length; ++k, w += kVectors * REEF_LANES) {
      const Vec value = x[k] - Vec{};  // in all lanes
#pragma GCC unroll 16
      for (int v = 0; v < kPanels * kVectors; ++v) {
        add_product(sums[0][v], value,
                    *reinterpret_cast<const Vec*>(w + v / kVectors * panel_size + v % kVectors * REEF_LANES));
      }
    }
  }
  finish_rows(work, sums, work.output, 0);
}

// Rows [first, first + kRows).
template <int kRows, int kVectors>
[[gnu::always_inline]] inline void multiply_tile(const TileWork& work, std::int64_t first) {
  Vec sums[kRows][kVectors] = {};
  const float* w = work.panel;
  const float* const* rows = work.rows + first;
  for (std::int64_t run = 0; run < work.runs; ++run, rows += work.row_capacity) {
    const float* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = rows[r];
    for (std::int64_t k = 0; k < work.length; ++k, w += kVectors * REEF_LANES) {
      Vec weight[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weight[v] = *reinterpret_cast<const Vec*>(w + v * REEF_LANES);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec value = x[r][k] - Vec{};  // in all lanes
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) add_product(sums[r][v], value, weight[v]);
      }
    }
  }
  // Results of columns that are not there go to `whole` alone. (Without a call: sums would lie in memory for it.)
  constexpr std::int64_t kWidth = kVectors * REEF_LANES;
  const bool is_whole = work.columns == kWidth;
  alignas(64) float whole[kRows * kWidth];
  float* const output = work.output + first * work.output_stride;
  finish_rows(work, sums, is_whole ? output : whole, is_whole ? work.output_stride : kWidth);
  if (is_whole) [[likely]]
    return;
  for (int r = 0; r < kRows; ++r) {
    const auto bytes = static_cast<std::size_t>(work.columns) * sizeof(float);
    std::memcpy(output + r * work.output_stride, whole + r * kWidth, bytes);
  }
}

// As many whole tiles of rows [row, count) as there are; returns the row that follows them.
template <int kRows, int kVectors>
[[gnu::noinline]] std::int64_t multiply_tiles(const TileWork& work, std::int64_t row, std::int64_t count) {
  for (; row + kRows <= count; row += kRows) multiply_tile<kRows, kVectors>(work, row);
  return row;
}

template <int kVectors>
void multiply_rows(const TileWork& work, std::int64_t count) {
  std::int64_t row = multiply_tiles<REEF_TILE_ROWS(kVectors), kVectors>(work, 0, count);
  if (count - row >= 4) row = multiply_tiles<4, kVectors>(work, row, count);
  if (count - row >= 2) row = multiply_tiles<2, kVectors>(work, row, count);
  multiply_tiles<1, kVectors>(work, row, count);
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  switch (vectors) {
    case 1:
      return multiply_rows<1>(work, count);
#if REEF_TILE_VECTORS > 2
    case 3:
      return multiply_rows<3>(work, count);
    case 4:
      return multiply_rows<4>(work, count);
#endif
    default:
      return multiply_rows<2>(work, count);
  }
}

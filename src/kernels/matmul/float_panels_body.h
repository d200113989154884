// SPDX-License-Identifier: Apache-2.0
// The tile loop of matmul/float_panels.h for one target: REEF_LANES floats a vector, REEF_TILE_ROWS(vectors) rows a
// tile. No include guard: it is included once per target, see simd/targets.h.

using Vec [[gnu::vector_size(REEF_LANES * 4), gnu::aligned(4), gnu::may_alias]] = float;

struct TileWork {
  const float* const* rows;  // [run][row], row_capacity apart
  std::int64_t row_capacity, runs, length;
  const float* panel;
  const float* bias;  // padded to whole vectors
  float lowest, highest;
  float* output;  // of the tile's first row and the panel's first column
  std::int64_t output_stride, columns;
};

// Sums of one row to memory, with bias and limits.
template <int kVectors>
[[gnu::always_inline]] inline void finish_row(const TileWork& work, const Vec (&sums)[kVectors], float* to) {
  const Vec lowest = work.lowest - Vec{}, highest = work.highest - Vec{};
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) {
    const Vec total = sums[v] + *reinterpret_cast<const Vec*>(work.bias + v * REEF_LANES);
    const Vec raised = total < lowest ? lowest : total;  // NaN passes both
    const Vec result = highest < raised ? highest : raised;
    const std::int64_t left = work.columns - v * REEF_LANES;
    if (left >= REEF_LANES) {
      *reinterpret_cast<Vec*>(to + v * REEF_LANES) = result;
    } else {
      for (std::int64_t i = 0; i < left; ++i) to[v * REEF_LANES + i] = result[i];
    }
  }
}

// One row by several whole panels, `panel_size` floats apart: sums of one alone would wait for each addition.
template <int kPanels>
void multiply_row(const TileWork& work, std::int64_t panel_size) {
  constexpr int kVectors = REEF_TILE_VECTORS;
  Vec sums[kPanels * kVectors] = {};
  const float* w = work.panel;
  for (std::int64_t run = 0; run < work.runs; ++run) {
    const float* x = work.rows[run * work.row_capacity];
    for (std::int64_t k = 0; k < work.length; ++k, w += kVectors * REEF_LANES) {
      const Vec value = x[k] - Vec{};  // in all lanes
#pragma GCC unroll 16
      for (int v = 0; v < kPanels * kVectors; ++v) {
        sums[v] += value * *reinterpret_cast<const Vec*>(w + v / kVectors * panel_size + v % kVectors * REEF_LANES);
      }
    }
  }
  finish_row(work, sums, work.output);
}

template <int kRows, int kVectors>
void multiply_tile(const TileWork& work) {
  Vec sums[kRows][kVectors] = {};
  const float* w = work.panel;
  for (std::int64_t run = 0; run < work.runs; ++run) {
    const float* x[kRows];
    for (int r = 0; r < kRows; ++r) x[r] = work.rows[run * work.row_capacity + r];
    for (std::int64_t k = 0; k < work.length; ++k, w += kVectors * REEF_LANES) {
      Vec weight[kVectors];
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weight[v] = *reinterpret_cast<const Vec*>(w + v * REEF_LANES);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const Vec value = x[r][k] - Vec{};  // in all lanes
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) sums[r][v] += value * weight[v];
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) finish_row(work, sums[r], work.output + r * work.output_stride);
}

// As many rows as fit, from `row` on; returns how many were done.
template <int kVectors>
std::int64_t multiply_rows(TileWork work, std::int64_t row, std::int64_t count) {
  work.rows += row;
  work.output += row * work.output_stride;
  if (count - row >= REEF_TILE_ROWS(kVectors)) {
    multiply_tile<REEF_TILE_ROWS(kVectors), kVectors>(work);
    return REEF_TILE_ROWS(kVectors);
  }
  if (count - row >= 4) {
    multiply_tile<4, kVectors>(work);
    return 4;
  }
  if (count - row >= 2) {
    multiply_tile<2, kVectors>(work);
    return 2;
  }
  multiply_tile<1, kVectors>(work);
  return 1;
}

void multiply_panel(const TileWork& work, std::int64_t vectors, std::int64_t count) {
  for (std::int64_t row = 0; row < count;) {
    switch (vectors) {
      case 1:
        row += multiply_rows<1>(work, row, count);
        break;
#if REEF_TILE_VECTORS > 2
      case 3:
        row += multiply_rows<3>(work, row, count);
        break;
      case 4:
        row += multiply_rows<4>(work, row, count);
        break;
#endif
      default:
        row += multiply_rows<2>(work, row, count);
        break;
    }
  }
}

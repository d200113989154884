// SPDX-License-Identifier: Apache-2.0
// Float matrix products that keep the order of additions of TFLite's reference kernels.
//
// The reference adds a_k * w_k one after another, k ascending, into one float per output. We do the same for
// kColumnBlock outputs side by side: the weights of that many outputs are stored interleaved, so that vectors run
// across outputs and never along the sum. Results are equal to the bit.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace reef::kernels {

inline constexpr std::int64_t kColumnBlock = 8;

// Matrices of `columns` columns and `depth` rows, in blocks of kColumnBlock columns: [matrix][block][depth][column].
// Columns missing from the last block are zero.
struct PackedColumns {
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t blocks = 0;
  std::vector<float> values;

  PackedColumns() = default;
  PackedColumns(std::int64_t matrices, std::int64_t column_count, std::int64_t row_count)
      : columns(column_count),
        depth(row_count),
        blocks((column_count + kColumnBlock - 1) / kColumnBlock),
        values(static_cast<std::size_t>(matrices * blocks * row_count * kColumnBlock)) {}
  const float* block(std::int64_t matrix, std::int64_t index) const {
    return values.data() + (matrix * blocks + index) * depth * kColumnBlock;
  }
  float& at(std::int64_t matrix, std::int64_t column, std::int64_t row) {
    const std::int64_t index = matrix * blocks + column / kColumnBlock;
    return values[static_cast<std::size_t>((index * depth + row) * kColumnBlock + column % kColumnBlock)];
  }
};

// Four floats that are added and multiplied together; gcc and clang map it to any machine's vectors.
using Float4 [[gnu::vector_size(16)]] = float;

// Running sums of `Rows` rows and one block of columns.
template <int Rows>
struct FloatSums {
  Float4 low[Rows] = {}, high[Rows] = {};

  // sums += x_row(r)[k] * w[k][column] for k = 0, 1, ... count - 1, in this order.
  void add(const float* x, std::int64_t x_stride, const float* w, std::int64_t count) {
    for (std::int64_t k = 0; k < count; ++k, w += kColumnBlock) {
      Float4 w_low, w_high;
      std::memcpy(&w_low, w, sizeof w_low);
      std::memcpy(&w_high, w + 4, sizeof w_high);
      for (int r = 0; r < Rows; ++r) {
        const float value = x[r * x_stride + k];
        const Float4 all = {value, value, value, value};
        low[r] += all * w_low;
        high[r] += all * w_high;
      }
    }
  }
  void copy_row(int r, float* to) const {
    std::memcpy(to, &low[r], sizeof low[r]);
    std::memcpy(to + 4, &high[r], sizeof high[r]);
  }
};

// The end of a finished sum: the bias is added, then the sum is clamped.
struct FloatOutput {
  const float* bias = nullptr;  // null: none
  float lowest = 0, highest = 0;
  // The fast kernels may add products that were not rounded first, in one instruction, where the CPU has one: not the
  // reference's bits, nearer to the true sum.
  bool may_fuse = false;

  float operator()(float sum, std::int64_t channel) const {
    const float total = sum + (bias != nullptr ? bias[channel] : 0.0f);
    const float raised = total < lowest ? lowest : total;  // NaN passes both
    return highest < raised ? highest : raised;
  }
};

}  // namespace reef::kernels

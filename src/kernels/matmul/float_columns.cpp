// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul/float_columns.h"

#include <algorithm>

namespace reef::kernels {
namespace {

template <int Rows>
void multiply_rows(const float* x, std::int64_t x_stride, const PackedColumns& weights, const float* block,
                   std::int64_t first_column, const FloatOutput& finish, float* output, std::int64_t output_stride) {
  FloatSums<Rows> sums;
  sums.add(x, x_stride, block, weights.depth);
  const std::int64_t width = std::min(kColumnBlock, weights.columns - first_column);
  for (int r = 0; r < Rows; ++r) {
    float row[kColumnBlock];
    sums.copy_row(r, row);
    for (std::int64_t j = 0; j < width; ++j) {
      output[r * output_stride + first_column + j] = finish(row[j], first_column + j);
    }
  }
}

}  // namespace

void multiply_columns(const float* x, std::int64_t x_stride, std::int64_t rows, const PackedColumns& weights,
                      std::int64_t matrix, std::int64_t block_begin, std::int64_t block_end, const FloatOutput& finish,
                      float* output, std::int64_t output_stride) {
  for (std::int64_t b = block_begin; b < block_end; ++b) {
    const float* block = weights.block(matrix, b);
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      multiply_rows<4>(x + r * x_stride, x_stride, weights, block, b * kColumnBlock, finish, output + r * output_stride,
                       output_stride);
    }
    for (; r < rows; ++r) {
      multiply_rows<1>(x + r * x_stride, x_stride, weights, block, b * kColumnBlock, finish, output + r * output_stride,
                       output_stride);
    }
  }
}

}  // namespace reef::kernels

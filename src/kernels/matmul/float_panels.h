// SPDX-License-Identifier: Apache-2.0
// Float convolutions and matrix products, fast: the same bits as matmul/float_columns.h and conv/conv_float.h, which
// are the reference.
//
// Vectors run across output channels, and a tile of several pixels by several vectors stays in registers while the sum
// runs over window and channels in the reference's order, with separate multiplications and additions. So neither the
// machine nor the number of threads changes a bit. Zen processors have as many adders as multipliers, so this costs
// nothing there; where only fused multiply-adds run at full speed it costs up to half of it.
//
// Weights are packed once, in panels: [matrix][panel][depth][columns of the panel]. Positions outside the image are
// read as zeros, which changes nothing as long as weights are finite (0 * w is then a zero, and no sum is ever -0).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/conv/conv_shape.h"
#include "kernels/matmul/float_columns.h"
#include "kernels/simd/aligned.h"
#include "kernels/simd/targets.h"

namespace reef::kernels {

struct FloatPanels {
  std::int64_t matrices = 0, columns = 0, depth = 0;
  SimdTarget target = SimdTarget::kBaseline;
  std::int64_t lanes = 4;          // of a vector
  std::int64_t panel_columns = 8;  // of all panels but the last, a multiple of `lanes`
  bool finite = true;              // no infinity and no NaN
  AlignedVector<float> values;

  FloatPanels() = default;
  // For the active target. `vector_lanes`: one of float_vector_lanes() of it, or 0 for those that are fastest on this
  // CPU.
  FloatPanels(std::int64_t matrix_count, std::int64_t column_count, std::int64_t row_count,
              std::int64_t vector_lanes = 0);

  std::int64_t padded_columns() const { return (columns + lanes - 1) / lanes * lanes; }
  std::int64_t panels() const { return (columns + panel_columns - 1) / panel_columns; }
  std::int64_t width(std::int64_t panel) const {
    return std::min(panel_columns, padded_columns() - panel * panel_columns);
  }
  const float* panel(std::int64_t matrix, std::int64_t index) const {
    return values.data() + (matrix * padded_columns() + index * panel_columns) * depth;
  }
  // Fills column `column` of matrix `matrix` from `depth` numbers that are `stride` apart.
  void set_column(std::int64_t matrix, std::int64_t column, const float* from, std::int64_t stride);
};

// Floats in a vector of the target's code, the shortest first; more than one number where CPUs of one target differ in
// what is fast.
std::vector<std::int64_t> float_vector_lanes(SimdTarget target);

// Output pixels [pixel_begin, pixel_end), counted over all batches, and panels [panel_begin, panel_end) of group
// `group`. Needs finite weights where windows reach beyond the image.
void convolve_panels(const ConvShape& s, const float* input, const FloatPanels& weights, std::int64_t group,
                     const FloatOutput& finish, std::int64_t pixel_begin, std::int64_t pixel_end,
                     std::int64_t panel_begin, std::int64_t panel_end, float* output);

// The same as a product of matrices: rows [row_begin, row_end) of x times matrix `matrix`. `s` has one pixel per row.
void multiply_panels(const ConvShape& s, const float* x, const FloatPanels& weights, std::int64_t matrix,
                     const FloatOutput& finish, std::int64_t row_begin, std::int64_t row_end, float* output);

}  // namespace reef::kernels

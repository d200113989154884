// SPDX-License-Identifier: Apache-2.0
// The product of two computed matrices: BATCH_MATMUL, and both products of attention.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "numeric/chip_requantize.h"
#include "tiled/memory.h"

namespace reef::tiled {

// Where rows of a matrix lie in a tile: in image rows `row_bytes` apart, `pitch` bytes from one to the next.
struct MatrixRows {
  std::int32_t first = 0;  // bytes from the tensor's address
  std::int32_t pitch = 0, row_bytes = 0;
  friend bool operator==(const MatrixRows&, const MatrixRows&) = default;
};

// One product that a tile makes: `rows` * `columns` rows of `a` by one matrix of `b`.
struct MatrixRound {
  MatrixRows a, output;
  std::int32_t columns = 0, rows = 0;
  std::int32_t b_first = 0;  // bytes from b's address: the matrix
  friend bool operator==(const MatrixRound&, const MatrixRound&) = default;
};

// output[p, n] = clamp(multiplier * sum over k of (a[p, k] - a_zero) * (b[k, n] - b_zero)) + output_zero.
//
// `b` is in every tile that computes (kCopies; tiles may have different matrices). It becomes lines of wide memory in
// the layout of convolution weights: 64 columns of the result to a group, a line for each four of depth.
struct MatrixProduct {
  std::int32_t a = 0, b = 0, output = 0;  // TiledProgram::tensors
  std::int32_t a_zero = 0, b_zero = 0, output_zero = 0;
  float multiplier = 1;
  numeric::ChipClamp clamp;
  // How a matrix of b lies in memory. True: a pixel for each n, with k as channels, whole words of them. False: a pixel
  // for each k, with n as channels; as many pixels as make k a multiple of four, those behind the last are filled with
  // the zero point.
  bool rows_are_cells = false;
  std::int32_t depth = 0, results = 0;  // values of k, of n
  std::int32_t matrices = 1;            // of b in a tile, at most
  std::array<std::vector<MatrixRound>, chip::kTiles> rounds;
  bool is_last = true;            // of the steps that write `output`: its halo is exchanged
  std::int32_t lines = kNowhere;  // TiledProgram::wide: two times those of a matrix

  std::int32_t depth_words() const { return (depth + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes; }
  std::int32_t groups() const { return (results + chip::kCells - 1) / chip::kCells; }
};

}  // namespace reef::tiled

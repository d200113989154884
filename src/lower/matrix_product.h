// SPDX-License-Identifier: Apache-2.0
// Products of computed matrices as steps: how a second operand comes to all tiles that need it.
#pragma once

#include <cstdint>

#include "lower/builder.h"

namespace reef::lower {

// Sums of at most so many products: their lines, twice, and parameters share wide memory.
inline constexpr std::int32_t kMostMatrixDepth = 3200;

// Matrices as BATCH_MATMUL sees its operands: `batches` products of `rows` x `depth` by `depth` x `columns`.
struct MatrixShape {
  std::int32_t batches = 1, rows = 1, depth = 1, columns = 1;
};

// Narrow memory for copies of a matrix, unless four columns of the result take more, and lines of one buffer for it,
// unless 64 columns do.
inline constexpr std::int64_t kMostMatrixCopyBytes = 40 << 10;
inline constexpr std::int32_t kMostMatrixLines = 256;

// Zero points, multiplier and clamp of a product, from its tensors.
void set_numbers(const Builder& builder, tiled::MatrixProduct& product);

// Pixels `begin` to `end` of an image, in its own order, as far as a tile owns them: rows of the image with the same
// columns.
struct OwnPixelRange {
  std::int32_t y = 0, x = 0, rows = 0, columns = 0;
};
std::vector<OwnPixelRange> own_pixels_between(const tiled::TiledTensor& grid, int tile, std::int64_t begin,
                                              std::int64_t end);

// A run of channels of pixels `begin` to `end` of an image on the grid.
struct PixelRun {
  std::int64_t begin = 0, end = 0;
  std::int32_t first_channel = 0, words = 0;
};
// Copies it to tiles that have a tensor as a whole (kCopies): from byte `target` of that on, a pixel behind the other.
// `only_row`: the row of tiles it is taken from; -1: from all that own it. What is copied from the same place to the
// same place of several tiles is copied once.
void add_pixel_copies(const tiled::TiledTensor& from, const PixelRun& run, const tiled::TiledTensor& to,
                      std::int32_t target, tiled::TileMask tiles, int only_row, std::vector<tiled::RingCopy>& copies);

// Fails where a tile has more rows of a matrix than a loop can count.
Status check_round(const OwnPixelRange& range);

}  // namespace reef::lower

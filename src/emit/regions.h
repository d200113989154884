// SPDX-License-Identifier: Apache-2.0
// What a tile has of a tensor, whichever way that is spread: pixels in rows.
#pragma once

#include <cstdint>

#include "tiled/tensor.h"

namespace reef::emit {

struct Region {
  std::int32_t first_byte = 0;
  std::int32_t columns = 0, rows = 0;
  std::int32_t words = 0;                 // of a pixel
  std::int32_t pitch = 0, row_bytes = 0;  // from pixel to pixel, from row to row
  std::int64_t buffer_bytes = 0;          // of the tile, halo and all

  std::int64_t pixels() const { return std::int64_t{columns} * rows; }
  bool rows_touch() const { return row_bytes == columns * pitch; }
};

// The pixels of `tensor` that the tile owns of `owner`. Both are spread in the same way; in work by slices a tile may
// have more of an operand than of the result.
inline Region region_of(const tiled::TiledTensor& tensor, const tiled::TiledTensor& owner, int tile) {
  Region region;
  region.pitch = tensor.pitch;
  switch (tensor.spread) {
    case tiled::Spread::kGrid: {
      const int row = chip::tile_row(tile), column = chip::tile_column(tile);
      const tiled::TileShare &rows = owner.rows.tile(row), &columns = owner.columns.tile(column);
      region.columns = columns.own();
      region.rows = rows.own();
      region.words = tensor.pixel_words();
      region.row_bytes = tensor.row_bytes(column);
      region.first_byte = tensor.byte_of(row, column, rows.begin, columns.begin);
      region.buffer_bytes = std::int64_t{tensor.rows.length(row)} * region.row_bytes;
      break;
    }
    case tiled::Spread::kVector:
      region.columns = region.rows = 1;
      region.words = (tensor.run_of(tile) + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes;
      region.pitch = region.words * chip::kNarrowWordBytes;
      region.row_bytes = region.pitch;
      region.first_byte = tensor.address;
      region.buffer_bytes = region.pitch;
      break;
    case tiled::Spread::kCopies:
      region.columns = tensor.width;
      region.rows = tensor.height;
      region.words = tensor.pixel_words();
      region.row_bytes = tensor.width * tensor.pitch;
      region.first_byte = tensor.address;
      region.buffer_bytes = std::int64_t{region.rows} * region.row_bytes;
      break;
  }
  return region;
}

inline Region own_region(const tiled::TiledTensor& tensor, int tile) { return region_of(tensor, tensor, tile); }

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// An activation in the narrow memories of the tiles.
//
// Three ways to spread one over the tiles:
//   kGrid     height x width pixels, cut by rows and columns over the 4x4 tiles; a tile has all channels of its pixels,
//             and a halo around them where its readers need one
//   kVector   a single pixel, cut by channels: tile t has those from `run` t on
//   kCopies   everything, in each tile of a set
// In a tile, pixels lie row by row, `pitch` bytes each; rows of a grid tile's buffer are as long as its column's
// buffer. Channels are bytes; the 16-bit state of an LSTM is a vector of twice as many, of whole words of 4 numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "chip/machine.h"
#include "tiled/axis_partition.h"
#include "tiled/memory.h"

namespace reef::tiled {

enum class Spread : std::uint8_t { kGrid, kVector, kCopies };

inline constexpr std::int32_t kVectorRun = chip::kCells;  // channels of a kVector tensor in one tile, usually

// The run of a vector that is spread over as many tiles as it has groups of 64 channels, or over all of them.
constexpr std::int32_t vector_run(std::int32_t channels) {
  const std::int32_t groups = (channels + kVectorRun - 1) / kVectorRun;
  return (groups + chip::kTiles - 1) / chip::kTiles * kVectorRun;
}

struct TiledTensor {
  std::int32_t source = -1;  // the model's tensor
  Spread spread = Spread::kGrid;
  std::int32_t height = 1, width = 1, channels = 0;
  std::int32_t pitch = 0;           // bytes from pixel to pixel: channels rounded up to 4, more inside a concatenation
  std::int32_t zero_point = 0;      // the chip's, 0..255: what padding holds
  float scale = 1.0f;               // of the model's tensor
  AxisPartition rows, columns;      // kGrid
  bool is_part = false;             // kGrid: of another one with the same object, whose halo is filled in later
  TileMask tiles = 0;               // kCopies
  std::int32_t run = kVectorRun;    // kVector: channels of each tile but the last, whole words
  std::int32_t object = kNowhere;   // TiledProgram::narrow; tensors that share a place have the same
  std::int32_t offset = 0;          // bytes from the start of the object: the channel at which a part begins
  std::int32_t address = kNowhere;  // byte of narrow memory of all tiles, schedule's: the object's and the offset

  // ---- kGrid ----
  // Bytes that the largest tile buffer takes; all tiles reserve as much.
  std::int64_t grid_bytes() const { return std::int64_t{rows.max_length()} * columns.max_length() * pitch; }
  std::int32_t row_bytes(int column) const { return columns.length(column) * pitch; }
  bool has_halo() const { return rows.has_halo() || columns.has_halo(); }
  // Where tile (row, column) keeps pixel (y, x) of the image.
  std::int32_t byte_of(int row, int column, std::int32_t y, std::int32_t x) const {
    return address + rows.place(row, y) * row_bytes(column) + columns.place(column, x) * pitch;
  }
  // Where it keeps the first pixel it owns.
  std::int32_t first_own_byte(int row, int column) const {
    return byte_of(row, column, rows.tile(row).begin, columns.tile(column).begin);
  }

  // ---- kVector ----
  std::int32_t vector_tiles() const { return (channels + run - 1) / run; }
  std::int32_t run_of(int tile) const { return std::clamp(channels - tile * run, 0, run); }

  // Bytes that it takes in the tile that has most of it.
  std::int64_t tile_bytes() const {
    switch (spread) {
      case Spread::kGrid:
        return grid_bytes();
      case Spread::kVector:
        return std::min(pitch, run);
      case Spread::kCopies:
        return std::int64_t{height} * width * pitch;
    }
    return 0;
  }
  // Words of 4 bytes that a pixel's channels take; more lie between two pixels inside a concatenation.
  std::int32_t pixel_words() const { return (channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes; }

  // All tiles have the same elements of both, at the same distance from where each begins.
  bool lies_like(const TiledTensor& other) const {
    const auto same_places = [](const AxisPartition& a, const AxisPartition& b) {
      for (int t = 0; t < kTilesPerAxis; ++t) {
        if (a.length(t) != b.length(t) || (a.tile(t).own() > 0 && a.tile(t).base != b.tile(t).base)) return false;
      }
      return a.size == b.size && a.front == b.front;
    };
    const bool same_shape = spread == other.spread && height == other.height && width == other.width &&
                            channels == other.channels && pitch == other.pitch;
    if (!same_shape || spread != Spread::kGrid) return same_shape && tiles == other.tiles && run == other.run;
    return same_places(rows, other.rows) && same_places(columns, other.columns);
  }

  // The same distance from pixel to pixel and from row to row in all tiles; which rows these are may differ.
  bool walks_like(const TiledTensor& other) const {
    if (spread != Spread::kGrid || other.spread != Spread::kGrid || pitch != other.pitch) return false;
    for (int t = 0; t < kTilesPerAxis; ++t) {
      if (row_bytes(t) != other.row_bytes(t)) return false;
    }
    return true;
  }

  // Tiles that have data of their own: all that own pixels, channels or a copy.
  TileMask owners() const {
    TileMask mask = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      const bool owns = spread == Spread::kGrid
                            ? rows.tile(chip::tile_row(t)).own() > 0 && columns.tile(chip::tile_column(t)).own() > 0
                        : spread == Spread::kVector ? run_of(t) > 0
                                                    : (tiles & mask_of(t)) != 0;
      if (owns) mask |= mask_of(t);
    }
    return mask;
  }
};

}  // namespace reef::tiled

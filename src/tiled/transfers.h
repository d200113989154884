// SPDX-License-Identifier: Apache-2.0
// Between the host and the tiles: inputs and results of a program, and the sizes that scheduling and emission share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "tiled/tensor.h"

namespace reef::tiled {

// How an input comes in: through a buffer beside the input tensor, and lines of wide memory before that.
//   rows     every tile has the same share, of whole words: row by row through two slots, while the next one arrives
//   slots    any other image of up to 3 channels, or of whole words: a few rows at a time, for each row of tiles by
//            itself
//   strips   any other image: all rows of a tile at once, then they are copied
//   vector   a single pixel, cut by channels (kVector): straight to its place
struct Infeed {
  std::int32_t border = -1;  // the model's tensor at the border, whose name the host uses
  std::int32_t tensor = 0;   // TiledProgram::tensors
  bool strips = false, slots = false;
  bool vector = false;                 // only row_lines is used, for InputVector::lines
  std::int32_t row_buffer = kNowhere;  // TiledProgram::narrow: slots, then the constants of the copy
  std::int32_t row_lines = kNowhere;   // TiledProgram::wide: lines of incoming rows
  std::int32_t identity = kNowhere;    // TiledProgram::wide: the parameters that copy
};

// A piece of narrow memory to wide memory of the same tile, in all tiles, or back.
struct Spill {
  std::int32_t object = 0;  // TiledProgram::narrow
  std::int32_t lines = 0;   // TiledProgram::wide
  bool is_back = false;
};

// The halo of a tensor that was made in parts.
struct HaloUpdate {
  std::int32_t tensor = 0;  // TiledProgram::tensors
};

struct Outfeed {
  std::int32_t border = -1;       // the model's tensor at the border
  bool is_state = false;          // a variable, which the program changes
  std::int32_t tensor = 0;        // TiledProgram::tensors
  std::int32_t lines = kNowhere;  // TiledProgram::wide: two, filled and sent in turn
  std::int32_t piece = 0;         // of several that the tensor goes out in, in order
};

// An image that the host keeps for the program, in its scratch memory: the columns of each column of tiles by
// themselves, row after row, whatever rows of tiles they come from and go to.
struct HostImage {
  std::int64_t offset = 0;  // bytes from the start of the scratch memory
  std::int32_t height = 0, width = 0;
  std::int32_t pixel_words = 0;

  std::int32_t row_words(int column) const { return (cut(width, column + 1) - cut(width, column)) * pixel_words; }
  // Rows begin at whole units of transfers: there may be a word behind each that means nothing.
  std::int32_t row_units(int column) const {
    constexpr std::int32_t kUnitWords = chip::kActivationFifoUnitBytes / chip::kNarrowWordBytes;
    return (row_words(column) + kUnitWords - 1) / kUnitWords;
  }
  std::int64_t row_offset(int column, std::int32_t y) const {
    std::int64_t units = std::int64_t{y} * row_units(column);
    for (int c = 0; c < column; ++c) units += std::int64_t{height} * row_units(c);
    return offset + units * chip::kActivationFifoUnitBytes;
  }
  std::int64_t bytes() const { return row_offset(kTilesPerAxis, 0) - offset; }
};

// Pixels of a tensor on the grid, those that its tiles own, to the host or back.
struct HostStore {
  std::int32_t tensor = 0;  // TiledProgram::tensors
  HostImage image;
  std::int32_t lines = kNowhere;  // TiledProgram::wide: kOutfeedLines
};
struct HostLoad {
  std::int32_t tensor = 0;  // TiledProgram::tensors: pixels next to each other
  HostImage image;
  std::int32_t lines = kNowhere;  // TiledProgram::wide: kLines, in two halves

  static constexpr std::int32_t kLines = 16;
};

// A row of the network's input, as it comes from the host.
struct InputRows {
  std::int32_t bytes = 0;           // of one row of the image
  std::int32_t lines = 0;           // wide lines that a row takes, rounded up
  std::int32_t slot_bytes = 0;      // narrow memory for one row; there are two
  std::int32_t constant_words = 0;  // of the copy's parameters, made in narrow memory behind the slots
  std::int32_t identity_lines = 0;  // that these take in wide memory

  static InputRows of(const TiledTensor& tensor) {
    InputRows rows;
    rows.bytes = tensor.width * tensor.channels;
    rows.lines = (rows.bytes + chip::kWideLineBytes - 1) / chip::kWideLineBytes;
    rows.slot_bytes = std::max(chip::kWideLineBytes, rows.bytes);
    const bool whole_words = tensor.channels % chip::kNarrowWordBytes == 0;
    // 4 words of identity; single bytes are copied with a line of zeros behind it, which pads pixels to 4 bytes.
    rows.constant_words = whole_words ? 4 : 4 + chip::kWideLineBytes / chip::kNarrowWordBytes;
    rows.identity_lines = whole_words ? 1 : 2;
    return rows;
  }
};

// A few rows of the input at a time, of which there are two.
struct InputSlots {
  std::int32_t rows = 1;   // of the image: as many as make whole words
  std::int32_t bytes = 0;  // of these
  std::int32_t lines = 1;  // wide lines that come at a time

  static constexpr std::int32_t kMostLines = 8;
  static InputSlots of(const TiledTensor& tensor) {
    const std::int32_t row_bytes = tensor.width * tensor.channels;
    InputSlots slots;
    slots.rows = chip::kNarrowWordBytes / std::gcd(chip::kNarrowWordBytes, row_bytes);
    slots.bytes = slots.rows * row_bytes;
    slots.lines = std::clamp(slots.bytes / chip::kWideLineBytes, 1, kMostLines);
    return slots;
  }
  static bool can_take(const TiledTensor& tensor) {
    constexpr std::int64_t kMostSlotBytes = chip::kNarrowBytes / 2;
    return (tensor.channels % chip::kNarrowWordBytes == 0 || tensor.channels < chip::kNarrowWordBytes) &&
           std::int64_t{tensor.width} * tensor.channels * chip::kNarrowWordBytes <= kMostSlotBytes;
  }

  // What a row of tiles gets.
  struct Strip {
    std::int32_t first_row = 0;  // of the image; perhaps before the first that is wanted
    std::int32_t slots = 0;
    std::int64_t first_unit = 0, units = 0;  // of 8 bytes, from the start of the image
    std::int64_t words = 0;                  // of 4 bytes, from the first row on
  };
  Strip strip(const TiledTensor& tensor, int tile_row) const {
    const TileShare& share = tensor.rows.tile(tile_row);
    Strip strip;
    if (share.own() == 0) return strip;
    constexpr std::int64_t kUnit = chip::kActivationFifoUnitBytes;
    const std::int64_t row_bytes = std::int64_t{tensor.width} * tensor.channels;
    strip.first_row = share.begin - share.begin % rows;
    strip.slots = (share.end - strip.first_row + rows - 1) / rows;
    const std::int64_t first = strip.first_row * row_bytes;
    strip.first_unit = first / kUnit;
    strip.units = (share.end * row_bytes + kUnit - 1) / kUnit - strip.first_unit;
    strip.words = (strip.units * kUnit - first % kUnit) / chip::kNarrowWordBytes;
    return strip;
  }
};

// The rows of a tile row's share of the input, as whole units of the host's transfers: all of its tiles get them.
struct InputStrip {
  std::int64_t first_unit = 0, units = 0;  // of 8 bytes, from the start of the image
  std::int32_t shift = 0;                  // bytes of the first unit that belong to the row before

  static InputStrip of(const TiledTensor& tensor, int tile_row) {
    const std::int64_t row_bytes = std::int64_t{tensor.width} * tensor.channels;
    const std::int64_t begin = tensor.rows.tile(tile_row).begin * row_bytes;
    const std::int64_t end = tensor.rows.tile(tile_row).end * row_bytes;
    InputStrip strip;
    strip.first_unit = begin / chip::kActivationFifoUnitBytes;
    strip.shift = static_cast<std::int32_t>(begin % chip::kActivationFifoUnitBytes);
    strip.units = (end + chip::kActivationFifoUnitBytes - 1) / chip::kActivationFifoUnitBytes - strip.first_unit;
    if (begin == end) strip.units = 0;
    return strip;
  }
  // Narrow memory that the longest strip takes.
  static std::int64_t max_bytes(const TiledTensor& tensor) {
    std::int64_t units = 0;
    for (int row = 0; row < kTilesPerAxis; ++row) units = std::max(units, of(tensor, row).units);
    return units * chip::kActivationFifoUnitBytes;
  }
};

// A vector, as the tiles of a row get it: all channels of the row's tiles, of which each takes its own.
struct InputVector {
  std::int64_t first_unit = 0, units = 0;  // of 8 bytes, from the start of the input

  static std::int32_t lines(const TiledTensor& tensor) {  // of a row of tiles with equal runs
    return (tensor.run * chip::kTileColumns + chip::kWideLineBytes - 1) / chip::kWideLineBytes;
  }
  static InputVector of(const TiledTensor& tensor, int tile_row) {
    const std::int64_t all = (tensor.channels + chip::kActivationFifoUnitBytes - 1) / chip::kActivationFifoUnitBytes;
    const std::int64_t row_units = std::int64_t{tensor.run} * chip::kTileColumns / chip::kActivationFifoUnitBytes;
    InputVector vector;
    vector.first_unit = std::min(row_units * tile_row, all);
    vector.units = std::min(row_units, all - vector.first_unit);
    return vector;
  }
};

// Bytes of a whole input, in the units of the host's transfers.
inline std::int32_t input_bytes(const TiledTensor& tensor) {
  const std::int32_t bytes = tensor.height * tensor.width * tensor.channels;
  return (bytes + chip::kActivationFifoUnitBytes - 1) / chip::kActivationFifoUnitBytes * chip::kActivationFifoUnitBytes;
}

// The outfeed sends through two lines of wide memory.
inline constexpr std::int32_t kOutfeedLines = 2;

}  // namespace reef::tiled

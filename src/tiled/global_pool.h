// SPDX-License-Identifier: Apache-2.0
// The average of a whole image, channel by channel: two steps.
//
//   Relayout     pixels of the grid -> all pixels of some channels in each tile
//   GlobalPool   every tile averages its channels
#pragma once

#include <algorithm>
#include <cstdint>

#include "numeric/chip_requantize.h"
#include "tiled/elementwise.h"
#include "tiled/tensor.h"

namespace reef::tiled {

// Which channels a tile gets: equal runs of whole groups of 64 cells, tile after tile; the last may have fewer.
struct ChannelRuns {
  std::int32_t words = 0;      // of a pixel: 4 channels each
  std::int32_t run_words = 0;  // of each tile but the last
  std::int32_t tiles = 0;      // that have any

  static ChannelRuns of(std::int32_t channels) {
    const std::int32_t groups = (channels + chip::kCells - 1) / chip::kCells;
    const std::int32_t groups_per_tile = (groups + chip::kTiles - 1) / chip::kTiles;
    ChannelRuns runs;
    runs.words = (channels + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes;
    runs.run_words = groups_per_tile * (chip::kCells / chip::kNarrowWordBytes);
    runs.tiles = (runs.words + runs.run_words - 1) / runs.run_words;
    return runs;
  }
  std::int32_t words_of(int tile) const { return std::clamp(words - tile * run_words, 0, run_words); }
  // Words of all tiles of a row of tiles: they come down a column together.
  std::int32_t words_of_row(int row) const {
    return std::clamp(words - chip::kTileColumns * row * run_words, 0, chip::kTileColumns * run_words);
  }
  // Words from pixel to pixel where all pixels of a run are together.
  std::int32_t pitch_words() const { return std::min(words, run_words); }
  std::int32_t rows() const { return (tiles + chip::kTileColumns - 1) / chip::kTileColumns; }
};

// All pixels of a tile's channels, row by row. Readers take four pixels at a time, so there is room behind the last.
inline std::int64_t gathered_bytes(const TiledTensor& image, const ChannelRuns& runs) {
  constexpr std::int32_t kPixelsAtATime = 4;
  const std::int32_t tail = (image.width + kPixelsAtATime - 1) / kPixelsAtATime * kPixelsAtATime - image.width;
  return (std::int64_t{image.height} * image.width + tail) * runs.pitch_words() * chip::kNarrowWordBytes;
}

struct Relayout {
  std::int32_t input = 0;  // TiledProgram::tensors, kGrid
  ChannelRuns runs;
  // TiledProgram::narrow
  std::int32_t gathered = kNowhere;  // the result
  std::int32_t strip = kNowhere;     // the channels of a row of tiles for a column of the image
  std::int32_t words = kNowhere;     // small ones: kRelayWords, a constant 1
  // TiledProgram::wide
  std::int32_t two_lines = kNowhere;
  Identity identity;  // made here for later steps
};

// Two words for each direction: of what is passed on.
inline constexpr std::int32_t kRelayWords = 8;
inline constexpr std::int32_t kPoolWords = kRelayWords + 1;

struct GlobalPool {
  std::int32_t input = 0;   // TiledProgram::tensors: the image, for its sizes; its pixels are in `gathered`
  std::int32_t output = 0;  // TiledProgram::tensors, kVector
  ChannelRuns runs;
  std::int32_t stride = 1;           // the operator's, which has no effect
  std::int32_t gathered = kNowhere;  // TiledProgram::narrow
  std::int32_t words = kNowhere;     // TiledProgram::narrow: as in Relayout
  std::int32_t lines = kNowhere;     // TiledProgram::wide: one for four pixels of 64 channels
  float multiplier = 1;
  numeric::ChipClamp clamp;
};

}  // namespace reef::tiled

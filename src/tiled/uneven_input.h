// SPDX-License-Identifier: Apache-2.0
// An input image whose rows or columns do not divide by 4, or whose rows are no whole words, as Google's compiler
// brings it in: slots of a few rows, which begin with each tile's own first pixel.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tiled/program.h"

namespace reef::tiled {

struct UnevenInput {
  std::int32_t rows = 1;        // of the image in a slot: as many as make whole words
  std::int32_t words = 0;       // that these take
  std::int32_t slot_bytes = 0;  // narrow memory for a slot; there are two
  std::int32_t lines = 1;       // wide lines that come at a time; there is room for twice as many

  static UnevenInput of(const TiledTensor& tensor) {
    const InputSlots slots = InputSlots::of(tensor);
    UnevenInput input;
    input.rows = slots.rows;
    input.words = slots.bytes / chip::kNarrowWordBytes;
    input.slot_bytes = std::max(chip::kWideLineBytes, slots.bytes);
    input.lines = InputRows::of(tensor).lines;
    return input;
  }

  // How a tile takes its share out of what its row of tiles gets.
  struct Share {
    std::int64_t first_unit = 0, units = 0;  // of 8 bytes: of the row of tiles
    std::int64_t lines = 0;                  // of these
    std::int64_t skipped = 0;                // words before the one with the tile's first byte
    std::int32_t first_byte = 0;             // in that word
    std::int32_t slots = 0;                  // with rows of the tile
    std::int64_t filled = 0, last = 0;       // slots that are filled, and the words of the last of these
  };
  Share share(const TiledTensor& tensor, int row, int column) const {
    constexpr std::int64_t kUnit = chip::kActivationFifoUnitBytes, kWord = chip::kNarrowWordBytes;
    const TileShare& own = tensor.rows.tile(row);
    const std::int64_t row_bytes = std::int64_t{tensor.width} * tensor.channels;
    const std::int64_t begin = own.begin * row_bytes;
    const std::int64_t first = begin + std::int64_t{tensor.columns.tile(column).begin} * tensor.channels;
    Share share;
    share.first_unit = begin / kUnit;
    share.units = (own.end * row_bytes + kUnit - 1) / kUnit - share.first_unit;
    share.lines = (share.units * kUnit + chip::kWideLineBytes - 1) / chip::kWideLineBytes;
    share.skipped = first / kWord - share.first_unit * (kUnit / kWord);
    share.first_byte = static_cast<std::int32_t>(first % kWord);
    share.slots = (own.own() + rows - 1) / rows;
    // Everything that comes is stored, also what is left of the last line.
    const std::int64_t all = share.lines * (chip::kWideLineBytes / kWord) - share.skipped;
    share.filled = std::min<std::int64_t>((all + words - 1) / words, share.slots + 1);
    share.last = all - (share.filled - 1) * words;
    return share;
  }

  // Only then. Both levels of memory are as InputSlots asks for.
  static bool can_take(Level level, const TiledTensor& tensor) {
    if (level != Level::kAsGoogle || tensor.rows.is_local || tensor.channels >= chip::kNarrowWordBytes ||
        !InputSlots::can_take(tensor) || tensor.owners() != kAllTiles) {
      return false;
    }
    const UnevenInput input = of(tensor);
    for (int t = 0; t < chip::kTiles; ++t) {
      const Share share = input.share(tensor, chip::tile_row(t), chip::tile_column(t));
      if (share.last > input.slot_bytes / chip::kNarrowWordBytes || share.filled < share.slots) return false;
    }
    return true;
  }
};

}  // namespace reef::tiled

// SPDX-License-Identifier: Apache-2.0
// A tensor on the grid becomes one of another shape with the same bytes in the same order: what RESHAPE is at -O0, in
// the way of Google's compiler.
//
//   1  rows of the image come together in the first column of tiles (the strips)
//   2  these tiles exchange what their rows of tiles have of the result, whole rows of the image at a time
//   3  from there it is spread over each row of tiles
// Everything is moved in whole words, padding of pixels included.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/at.h"
#include "tiled/elementwise.h"
#include "tiled/tensor.h"

namespace reef::tiled {

struct Reflow {
  std::int32_t input = 0;          // TiledProgram::tensors: kGrid, pixels without gaps between them
  std::int32_t output = 0;         // TiledProgram::tensors: kVector or kGrid, as many words
  std::int32_t strips = kNowhere;  // TiledProgram::narrow
  std::int32_t relay = kNowhere;   // TiledProgram::narrow: kReflowRelayWords, for what only passes through
  Identity identity;
};
inline constexpr std::int32_t kReflowRelayWords = 8;

// What the first tile of each row of tiles holds in between, in units: rows of the image, or pixels where it has only
// one row.
struct ReflowStrips {
  struct Strip {
    Range own;                        // units that come from its own row of tiles
    Range wanted;                     // units with anything of its part of the result
    Range held;                       // the buffer
    std::int64_t begin = 0, end = 0;  // words of all that are its part of the result
  };
  std::int64_t unit_words = 1;
  std::array<Strip, kTilesPerAxis> rows;

  const Strip& row(int index) const { return rows[at(index)]; }
  std::int64_t held_bytes(int index) const {
    return (row(index).held.end - row(index).held.begin) * unit_words * chip::kNarrowWordBytes;
  }
  std::int64_t max_bytes() const {
    std::int64_t bytes = 0;
    for (int r = 0; r < kTilesPerAxis; ++r) bytes = std::max(bytes, held_bytes(r));
    return bytes;
  }

  // Both cut already.
  static ReflowStrips of(const TiledTensor& input, const TiledTensor& output) {
    ReflowStrips strips;
    const std::int64_t pixel = input.pitch / chip::kNarrowWordBytes;
    const bool by_pixels = input.height == 1;
    strips.unit_words = by_pixels ? pixel : pixel * input.width;
    for (int r = 0; r < kTilesPerAxis; ++r) {
      Strip& strip = strips.rows[at(r)];
      const TileShare& share = input.rows.tile(r);
      strip.own = by_pixels ? Range{0, share.own() * input.width} : Range{share.begin, share.end};
      part_of(output, r, strip.begin, strip.end);
      if (strip.begin < strip.end) {
        strip.wanted = {static_cast<std::int32_t>(strip.begin / strips.unit_words),
                        static_cast<std::int32_t>((strip.end + strips.unit_words - 1) / strips.unit_words)};
      }
      strip.held = strip.own;
      strip.held.include(strip.wanted);
    }
    return strips;
  }

 private:
  static void part_of(const TiledTensor& output, int row, std::int64_t& begin, std::int64_t& end) {
    if (output.spread == Spread::kVector) {
      const std::int64_t words = output.pixel_words();
      const std::int64_t of_row = std::int64_t{chip::kTileColumns} * output.run / chip::kNarrowWordBytes;
      begin = std::min(of_row * row, words);
      end = std::min(begin + of_row, words);
      return;
    }
    const std::int64_t line = std::int64_t{output.width} * output.pitch / chip::kNarrowWordBytes;
    begin = output.rows.tile(row).begin * line;
    end = output.rows.tile(row).end * line;
  }
};

}  // namespace reef::tiled

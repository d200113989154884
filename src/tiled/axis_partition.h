// SPDX-License-Identifier: Apache-2.0
// How one axis of a tensor (rows or columns) is spread over the four tiles of that direction.
//
// Every tile owns a run of elements: it computes them, nobody else does. To read windows that reach over the border of
// its run it also needs elements of its neighbours, or padding at the border of the image: the halo, which is kept in
// the same buffer, before and behind the owned elements:
//
//   buffer of tile t:   [ front - before ] [ before ] [ own ] [ after ]
//                         (not used)        halo       own     halo
//
// `front` is the same for all tiles of an axis, so that owned elements start at the same place in every buffer (or
// there is none, and each buffer begins with its tile's own halo). The buffer ends with the tile's own halo: buffers of
// different tiles may differ in length.
//
// In work by slices (lower/row_slices.h) a tile computes everything that it needs by itself, the same as its neighbours
// where it must be: shares overlap, and halos are padding only. What it computes of a tensor that is made slice by
// slice is a part of its share, which lies somewhere in the share's buffer (`base`).
//
// A halo that is wider than what the neighbour owns comes from further away: the neighbour must hold (and pass on) the
// rest, so it gets a halo for that even if it computes nothing itself.
//
// How it is known: cuts and buffer layout reproduce Google's addresses in whole programs (10x10, 7x7, 6x4, 3x2 maps).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "base/at.h"
#include "chip/machine.h"

namespace reef::tiled {

inline constexpr int kTilesPerAxis = 4;
static_assert(kTilesPerAxis == chip::kTileRows && kTilesPerAxis == chip::kTileColumns);

// Element i of n belongs to the tile t with cut(n, t) <= i < cut(n, t + 1).
constexpr std::int32_t cut(std::int32_t size, int tile) {
  return static_cast<std::int32_t>((std::int64_t{size} * tile + kTilesPerAxis - 1) / kTilesPerAxis);
}

// How an operator reads an axis: output o reads elements o * stride - pad_before + k * dilation for k < kernel. Where
// it enlarges, the first of these is divided by `enlarged` (and rounded down) before k * dilation is added.
struct Window {
  std::int32_t outputs = 0;
  std::int32_t kernel = 1, stride = 1, dilation = 1;
  std::int32_t pad_before = 0;
  std::int32_t enlarged = 1;

  std::int32_t reach() const { return (kernel - 1) * dilation + 1; }
  // First element that output `output` reads; may lie outside of the image.
  std::int32_t first(std::int32_t output) const {
    const std::int64_t at = std::int64_t{output} * stride - pad_before;
    const std::int64_t rest = at % enlarged;
    return static_cast<std::int32_t>((at - (rest < 0 ? rest + enlarged : rest)) / enlarged);
  }
  std::int32_t end(std::int32_t output) const { return first(output) + reach(); }
};

struct Range {
  std::int32_t begin = 0, end = 0;

  bool is_empty() const { return begin >= end; }
  void include(const Range& other) {
    if (other.is_empty()) return;
    *this = is_empty() ? other : Range{std::min(begin, other.begin), std::max(end, other.end)};
  }
  Range within(std::int32_t first, std::int32_t last) const { return {std::max(begin, first), std::min(end, last)}; }
  friend bool operator==(const Range&, const Range&) = default;
};
using TileRanges = std::array<Range, kTilesPerAxis>;

struct TileShare {
  std::int32_t begin = 0, end = 0;                // owned
  std::int32_t needed_begin = 0, needed_end = 0;  // read by what this tile computes; may lie outside of the image
  bool is_read = false;                           // false: this tile computes nothing from the tensor
  std::int32_t before = 0, after = 0;             // elements of halo
  std::int32_t base = 0;                          // the element that lies behind the front
  std::int32_t held = 0;                          // elements from there on that the buffer has room for

  std::int32_t own() const { return end - begin; }
  std::int32_t needed() const { return needed_end - needed_begin; }
  friend bool operator==(const TileShare&, const TileShare&) = default;
};

struct AxisPartition {
  std::int32_t size = 0;
  std::array<TileShare, kTilesPerAxis> tiles;
  std::int32_t front = 0;
  bool is_local = false;  // nothing is exchanged: halos are padding

  // Of a tensor that `readers` read; without any, nobody needs more than it owns. size and all outputs at least 1,
  // everything small enough for 32 bits (what fits into a tile is).
  static AxisPartition of(std::int32_t size, std::span<const Window> readers, const TileRanges& needed = {});
  // Every tile has what it needs, as far as it lies in the image.
  static AxisPartition local(std::int32_t size, const TileRanges& needed);
  // With buffers that begin with each tile's own halo, as in Google's programs: owned elements may start at different
  // places.
  AxisPartition with_own_fronts() const;
  // The same buffers, with a part of each tile's share in them.
  AxisPartition part(const TileRanges& own) const;

  // Each element is `count` elements, one behind the other; without halo.
  AxisPartition repeated(std::int32_t count) const;

  const TileShare& tile(int index) const { return tiles[reef::at(index)]; }
  // Elements of a tile's buffer.
  std::int32_t length(int index) const { return front + tile(index).held; }
  std::int32_t max_length() const;
  // Place of an element of the image in a tile's buffer.
  std::int32_t place(int index, std::int32_t element) const { return front + element - tile(index).base; }
  std::int32_t max_own() const;
  bool has_before() const;
  bool has_after() const;
  bool has_halo() const { return has_before() || has_after(); }
  // The last tile that owns anything: padding behind the image begins there.
  int last_owner() const;
  friend bool operator==(const AxisPartition&, const AxisPartition&) = default;
};

}  // namespace reef::tiled

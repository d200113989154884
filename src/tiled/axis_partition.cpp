// SPDX-License-Identifier: Apache-2.0
#include "tiled/axis_partition.h"

#include <algorithm>

namespace reef::tiled {
namespace {

// What tile `t` reads of the tensor, for all readers together.
void add_needs(TileShare& share, int t, std::span<const Window> readers) {
  for (const Window& window : readers) {
    const std::int32_t first = cut(window.outputs, t), end = cut(window.outputs, t + 1);
    if (first == end) continue;
    const std::int32_t from = window.first(first), to = window.end(end - 1);
    share.needed_begin = share.is_read ? std::min(share.needed_begin, from) : from;
    share.needed_end = share.is_read ? std::max(share.needed_end, to) : to;
    share.is_read = true;
  }
}

}  // namespace

AxisPartition AxisPartition::of(std::int32_t size, std::span<const Window> readers) {
  AxisPartition axis;
  axis.size = size;
  for (int t = 0; t < kTilesPerAxis; ++t) {
    TileShare& share = axis.tiles[static_cast<std::size_t>(t)];
    share.begin = cut(size, t);
    share.end = cut(size, t + 1);
    add_needs(share, t, readers);
    if (readers.empty()) share.is_read = share.own() > 0;
    if (!share.is_read || readers.empty()) {
      share.needed_begin = share.begin;
      share.needed_end = share.end;
    }
    share.before = std::max(0, share.begin - share.needed_begin);
    share.after = std::max(0, share.needed_end - share.end);
  }
  // What the neighbour needs beyond what this tile owns goes through this tile's halo.
  const int last = axis.last_owner();
  for (int t = 1; t <= last; ++t) {
    TileShare& share = axis.tiles[static_cast<std::size_t>(t)];
    share.after = std::max(share.after, axis.tile(t - 1).after - share.own());
  }
  for (int t = last + 1; t < kTilesPerAxis; ++t) axis.tiles[static_cast<std::size_t>(t)].after = 0;
  for (int t = last - 1; t >= 0; --t) {
    TileShare& share = axis.tiles[static_cast<std::size_t>(t)];
    share.before = std::max(share.before, axis.tile(t + 1).before - share.own());
  }
  for (const TileShare& share : axis.tiles) axis.front = std::max(axis.front, share.before);
  return axis;
}

std::int32_t AxisPartition::max_length() const {
  std::int32_t longest = 0;
  for (int t = 0; t < kTilesPerAxis; ++t) longest = std::max(longest, length(t));
  return longest;
}

std::int32_t AxisPartition::max_own() const {
  std::int32_t most = 0;
  for (const TileShare& share : tiles) most = std::max(most, share.own());
  return most;
}

bool AxisPartition::has_before() const { return front > 0; }

bool AxisPartition::has_after() const {
  return std::any_of(tiles.begin(), tiles.end(), [](const TileShare& share) { return share.after > 0; });
}

int AxisPartition::last_owner() const {
  int last = 0;
  for (int t = 0; t < kTilesPerAxis; ++t) {
    if (tile(t).own() > 0) last = t;
  }
  return last;
}

}  // namespace reef::tiled

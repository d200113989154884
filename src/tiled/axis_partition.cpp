// SPDX-License-Identifier: Apache-2.0
#include "tiled/axis_partition.h"

#include <algorithm>

#include "base/at.h"

namespace reef::tiled {
namespace {

void add_need(TileShare& share, const Range& range) {
  if (range.is_empty()) return;
  share.needed_begin = share.is_read ? std::min(share.needed_begin, range.begin) : range.begin;
  share.needed_end = share.is_read ? std::max(share.needed_end, range.end) : range.end;
  share.is_read = true;
}

// What tile `t` reads of the tensor, for all readers together.
void add_needs(TileShare& share, int t, std::span<const Window> readers) {
  for (const Window& window : readers) {
    const std::int32_t first = cut(window.outputs, t), end = cut(window.outputs, t + 1);
    if (first == end) continue;
    add_need(share, {window.first(first), window.end(end - 1)});
  }
}

void keep_behind_front(TileShare& share) {
  share.base = share.begin;
  share.held = share.own() + share.after;
}

}  // namespace

AxisPartition AxisPartition::of(std::int32_t size, std::span<const Window> readers, const TileRanges& needed) {
  AxisPartition axis;
  axis.size = size;
  const bool has_readers = !readers.empty() || std::any_of(needed.begin(), needed.end(),
                                                           [](const Range& range) { return !range.is_empty(); });
  for (int t = 0; t < kTilesPerAxis; ++t) {
    TileShare& share = axis.tiles[at(t)];
    share.begin = cut(size, t);
    share.end = cut(size, t + 1);
    add_needs(share, t, readers);
    add_need(share, needed[at(t)]);
    if (!has_readers) share.is_read = share.own() > 0;
    if (!share.is_read || !has_readers) {
      share.needed_begin = share.begin;
      share.needed_end = share.end;
    }
    share.before = std::max(0, share.begin - share.needed_begin);
    share.after = std::max(0, share.needed_end - share.end);
  }
  // What the neighbour needs beyond what this tile owns goes through this tile's halo.
  const int last = axis.last_owner();
  for (int t = 1; t <= last; ++t) {
    TileShare& share = axis.tiles[at(t)];
    share.after = std::max(share.after, axis.tile(t - 1).after - share.own());
  }
  // Nothing reaches tiles behind the last one with data.
  for (int t = last + 1; t < kTilesPerAxis; ++t) {
    TileShare& share = axis.tiles[at(t)];
    share.before = share.after = 0;
  }
  for (int t = last - 1; t >= 0; --t) {
    TileShare& share = axis.tiles[at(t)];
    share.before = std::max(share.before, axis.tile(t + 1).before - share.own());
  }
  for (TileShare& share : axis.tiles) {
    axis.front = std::max(axis.front, share.before);
    keep_behind_front(share);
  }
  return axis;
}

AxisPartition AxisPartition::local(std::int32_t size, const TileRanges& needed) {
  AxisPartition axis;
  axis.size = size;
  axis.is_local = true;
  for (std::size_t t = 0; t < needed.size(); ++t) {
    if (needed[t].is_empty()) continue;
    TileShare& share = axis.tiles[t];
    add_need(share, needed[t]);
    // Never empty, so that a tile that reads padding only has something to put it beside.
    share.begin = std::clamp(share.needed_begin, 0, size - 1);
    share.end = std::clamp(share.needed_end, share.begin + 1, size);
    share.before = std::max(0, share.begin - share.needed_begin);
    share.after = std::max(0, share.needed_end - share.end);
    keep_behind_front(share);
    axis.front = std::max(axis.front, share.before);
  }
  return axis;
}

AxisPartition AxisPartition::part(const TileRanges& own) const {
  AxisPartition axis = *this;
  for (std::size_t t = 0; t < own.size(); ++t) {
    TileShare& share = axis.tiles[t];
    const Range range = own[t].is_empty() ? Range{share.begin, share.begin} : own[t];
    share.begin = share.needed_begin = range.begin;
    share.end = share.needed_end = range.end;
    share.before = share.after = 0;
    share.is_read = !range.is_empty();
  }
  return axis;
}

AxisPartition AxisPartition::repeated(std::int32_t count) const {
  AxisPartition axis;
  axis.size = size * count;
  axis.is_local = is_local;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    TileShare& share = axis.tiles[t];
    share.begin = share.needed_begin = tiles[t].begin * count;
    share.end = share.needed_end = tiles[t].end * count;
    share.is_read = share.own() > 0;
    keep_behind_front(share);
  }
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

AxisPartition AxisPartition::with_own_fronts() const {
  AxisPartition axis = *this;
  axis.front = 0;
  for (TileShare& share : axis.tiles) {
    share.base -= share.before;
    share.held += share.before;
  }
  return axis;
}

bool AxisPartition::has_before() const {
  return front > 0 || std::any_of(tiles.begin(), tiles.end(), [](const TileShare& share) { return share.before > 0; });
}

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

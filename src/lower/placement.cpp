// SPDX-License-Identifier: Apache-2.0
#include "lower/placement.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/at.h"

namespace reef::lower {
namespace {

using tiled::AxisPartition;
using tiled::Spread;
using tiled::TileShare;

std::vector<std::int8_t> owners_of(const AxisPartition& axis) {
  std::vector<std::int8_t> owners(static_cast<std::size_t>(axis.size), 0);
  for (int t = 0; t < tiled::kTilesPerAxis; ++t) {
    std::fill(owners.begin() + axis.tile(t).begin, owners.begin() + axis.tile(t).end, static_cast<std::int8_t>(t));
  }
  return owners;
}

bool owns(const TileShare& share, std::int32_t element) { return element >= share.begin && element < share.end; }
bool holds(const TileShare& share, std::int32_t element) {
  return element >= share.begin - share.before && element < share.end + share.after;
}

}  // namespace

Placement::Placement(const tiled::TiledTensor& tensor) : tensor_(tensor) {
  if (tensor.spread != Spread::kGrid) return;
  tile_row_ = owners_of(tensor.rows);
  tile_column_ = owners_of(tensor.columns);
}

Placement::Pixel Placement::pixel(std::int64_t element) const {
  const auto pixel_of = [&](auto at) {  // divisions of 32 bits are much faster
    const auto channels = static_cast<decltype(at)>(tensor_.channels), width = static_cast<decltype(at)>(tensor_.width);
    const auto pixel = at / channels, y = pixel / width;
    return Pixel{static_cast<std::int32_t>(y), static_cast<std::int32_t>(pixel - y * width),
                 static_cast<std::int32_t>(at - pixel * channels)};
  };
  if (element <= std::numeric_limits<std::uint32_t>::max()) return pixel_of(static_cast<std::uint32_t>(element));
  return pixel_of(static_cast<std::uint64_t>(element));
}

std::int32_t Placement::grid_byte(int tile, const Pixel& p) const {
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  return tensor_.offset + tensor_.rows.place(row, p.y) * tensor_.row_bytes(column) +
         tensor_.columns.place(column, p.x) * tensor_.pitch + p.channel;
}

// Rows of the halo are exchanged over the columns that a tile owns, columns over the rows that it needs
// (emit/halo.cpp).
bool Placement::grid_has(int tile, const Pixel& p) const {
  const TileShare& rows = tensor_.rows.tile(chip::tile_row(tile));
  const TileShare& columns = tensor_.columns.tile(chip::tile_column(tile));
  if (owns(columns, p.x) && owns(rows, p.y)) return true;
  // Tiles behind the last one with data get no halo.
  if (chip::tile_row(tile) > tensor_.rows.last_owner() || chip::tile_column(tile) > tensor_.columns.last_owner()) {
    return false;
  }
  if (owns(columns, p.x)) return rows.is_read && holds(rows, p.y);
  return rows.is_read && columns.is_read && holds(columns, p.x) && p.y >= rows.needed_begin && p.y < rows.needed_end;
}

std::int32_t Placement::byte_on(int tile, std::int64_t element) const {
  switch (tensor_.spread) {
    case Spread::kGrid: {
      const Pixel p = pixel(element);
      return grid_has(tile, p) ? grid_byte(tile, p) : kNotHere;
    }
    case Spread::kVector:
      if (element / tensor_.run != tile) return kNotHere;
      return tensor_.offset + static_cast<std::int32_t>(element % tensor_.run);
    case Spread::kCopies: {
      if ((tensor_.tiles & tiled::mask_of(tile)) == 0) return kNotHere;
      const Pixel p = pixel(element);
      return tensor_.offset + (p.y * tensor_.width + p.x) * tensor_.pitch + p.channel;
    }
  }
  return kNotHere;
}

int Placement::owner(std::int64_t element, int reader) const {
  switch (tensor_.spread) {
    case Spread::kGrid: {
      const Pixel p = pixel(element);
      const int own_row = chip::tile_row(reader);
      const int row = owns(tensor_.rows.tile(own_row), p.y) ? own_row : tile_row_[reef::at(p.y)];
      return chip::kTileColumns * row + tile_column_[reef::at(p.x)];
    }
    case Spread::kVector:
      return static_cast<int>(element / tensor_.run);
    case Spread::kCopies:
      return std::countr_zero(tensor_.tiles);
  }
  return 0;
}

std::vector<Placement::OwnWord> Placement::own_words(int tile) const {
  std::vector<OwnWord> words;
  if ((tensor_.owners() & tiled::mask_of(tile)) == 0) return words;
  const auto add_run = [&](std::int32_t at, std::int64_t first, std::int32_t elements) {
    for (std::int32_t k = 0; k < elements; k += chip::kNarrowWordBytes)
      words.push_back({at + k, first + k, std::min(chip::kNarrowWordBytes, elements - k)});
  };
  if (tensor_.spread == Spread::kVector) {
    add_run(tensor_.offset, std::int64_t{tile} * tensor_.run, tensor_.run_of(tile));
    return words;
  }
  TileShare rows, columns;
  if (tensor_.spread == Spread::kGrid) {
    rows = tensor_.rows.tile(chip::tile_row(tile));
    columns = tensor_.columns.tile(chip::tile_column(tile));
  } else {
    rows.end = tensor_.height;
    columns.end = tensor_.width;
  }
  for (std::int32_t y = rows.begin; y < rows.end; ++y) {
    for (std::int32_t x = columns.begin; x < columns.end; ++x) {
      const std::int64_t first = (std::int64_t{y} * tensor_.width + x) * tensor_.channels;
      add_run(byte_on(tile, first), first, tensor_.channels);
    }
  }
  return words;
}

}  // namespace reef::lower

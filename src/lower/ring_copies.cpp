// SPDX-License-Identifier: Apache-2.0
#include "lower/ring_copies.h"

#include <algorithm>

namespace reef::lower {
namespace {

using tiled::RingCopy;
using tiled::WordWalk;

Status check_walk(const Builder& builder, const WordWalk& walk) {
  const auto& objects = builder.program().narrow;
  if (walk.object < 0 || static_cast<std::size_t>(walk.object) >= objects.size()) {
    return internal_error("a copy over the ring of an object that does not exist");
  }
  std::int64_t first = walk.offset, last = walk.offset;
  std::size_t dims = 0;
  for (const tiled::WordStep& dim : walk.dims) {
    if (dim.count < 1) return internal_error("a copy over the ring of {} words", dim.count);
    const std::int64_t reach = std::int64_t{dim.stride} * (dim.count - 1) * chip::kNarrowWordBytes;
    (reach < 0 ? first : last) += reach;
    dims += dim.count > 1;
  }
  const std::int64_t end = last + chip::kNarrowWordBytes;
  const std::int64_t size = objects[at(walk.object)].bytes;
  if (walk.offset % chip::kNarrowWordBytes != 0 || dims > tiled::kMostWalkDims || first < 0 || end > size) {
    return internal_error("a copy over the ring of bytes {} to {} of an object of {}, in {} dimensions", first, end,
                          size, dims);
  }
  return ok_status();
}

Status check_copy(const Builder& builder, const RingCopy& copy) {
  REEF_RETURN_IF_ERROR(check_walk(builder, copy.source));
  REEF_RETURN_IF_ERROR(check_walk(builder, copy.target));
  if (copy.from < 0 || copy.from >= chip::kTiles || copy.to == 0 || copy.source.words() != copy.target.words()) {
    return internal_error("a copy over the ring of {} words from tile {} to {} words on tiles {:#x}",
                          copy.source.words(), copy.from, copy.target.words(), copy.to);
  }
  return ok_status();
}

}  // namespace

Status set_ring_copies(Builder& builder, tiled::Step& step, tiled::RingCopies work) {
  for (const RingCopy& copy : work.copies) REEF_RETURN_IF_ERROR(check_copy(builder, copy));
  if (work.lines == tiled::kNowhere) work.lines = builder.new_wide(tiled::kRingCopyLines);
  step.wide_used.push_back(work.lines);
  step.work = std::move(work);
  return ok_status();
}

WordWalk own_pixels(const tiled::TiledTensor& grid, int tile) {
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  const tiled::TileShare &rows = grid.rows.tile(row), &columns = grid.columns.tile(column);
  const std::int32_t pitch = grid.pitch / chip::kNarrowWordBytes;
  const std::int32_t row_words = grid.row_bytes(column) / chip::kNarrowWordBytes;
  const std::int32_t first = grid.rows.place(row, rows.begin) * grid.row_bytes(column) +
                             grid.columns.place(column, columns.begin) * grid.pitch;
  return {grid.object, grid.offset + first, {{1, grid.pixel_words()}, {pitch, columns.own()}, {row_words, rows.own()}}};
}

WordWalk pixels_of(const tiled::TiledTensor& copies, const Rectangle& rectangle) {
  const std::int32_t pitch = copies.pitch / chip::kNarrowWordBytes;
  const std::int32_t first = (rectangle.y * copies.width + rectangle.x) * copies.pitch;
  return {copies.object,
          copies.offset + first,
          {{1, copies.pixel_words()}, {pitch, rectangle.columns}, {pitch * copies.width, rectangle.rows}}};
}

}  // namespace reef::lower

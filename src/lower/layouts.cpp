// SPDX-License-Identifier: Apache-2.0
// Changes of layout on demand: Builder::grid, vector, copies.
//
// Between vectors, single pixels and copies they are copies over the ring, in whole words; pixels that are no whole
// words keep the padding behind them. Everything else is a rearrangement of single elements (rearrange.h).
#include <bit>

#include "lower/builder.h"
#include "lower/element_maps.h"
#include "lower/rearrange.h"
#include "lower/ring_copies.h"
#include "lower/shared_steps.h"

namespace reef::lower {
namespace {

using tiled::RingCopies;
using tiled::Spread;
using tiled::WordWalk;

bool is_single_pixel(const TiledTensor& tensor) { return tensor.height == 1 && tensor.width == 1; }
std::int64_t elements(const TiledTensor& tensor) {
  return std::int64_t{tensor.height} * tensor.width * tensor.channels;
}

// The same values in another layout; not cut, not placed.
TiledTensor like(const TiledTensor& tensor, std::int32_t height, std::int32_t width, std::int32_t channels) {
  TiledTensor result;
  result.source = tensor.source;
  result.height = height;
  result.width = width;
  result.channels = channels;
  result.pitch = result.pixel_words() * kWord;
  result.zero_point = tensor.zero_point;
  result.scale = tensor.scale;
  return result;
}

// What a tile owns of an image on the grid.
Rectangle share_of(const TiledTensor& grid, int tile) {
  const tiled::TileShare& rows = grid.rows.tile(chip::tile_row(tile));
  const tiled::TileShare& columns = grid.columns.tile(chip::tile_column(tile));
  return {rows.begin, columns.begin, rows.own(), columns.own()};
}

WordWalk words_at(const TiledTensor& tensor, std::int64_t byte, std::int32_t words) {
  return {tensor.object, tensor.offset + static_cast<std::int32_t>(byte), {{1, words}}};
}

// Where a tensor that one tile has as a whole begins there: an image of one pixel may have a halo around it.
std::int64_t first_byte(const TiledTensor& tensor) {
  if (tensor.spread != Spread::kGrid) return 0;
  return own_pixels(tensor, std::countr_zero(tensor.owners())).offset - tensor.offset;
}

// Everything to all tiles of the result.
std::vector<tiled::RingCopy> to_copies(const TiledTensor& from, const TiledTensor& to) {
  std::vector<tiled::RingCopy> copies;
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((from.owners() & tiled::mask_of(tile)) == 0) continue;
    tiled::RingCopy copy{.from = tile, .to = to.tiles, .source = {}, .target = {}};
    if (from.spread == Spread::kGrid) {
      copy.source = own_pixels(from, tile);
      copy.target = pixels_of(to, share_of(from, tile));
    } else if (from.spread == Spread::kVector) {
      const std::int32_t words = (from.run_of(tile) + kWord - 1) / kWord;
      copy.source = words_at(from, 0, words);
      copy.target = words_at(to, std::int64_t{tile} * from.run, words);
    } else {
      copy.source = pixels_of(from, {0, 0, from.height, from.width});
      copy.target = pixels_of(to, {0, 0, to.height, to.width});
      copies.push_back(std::move(copy));
      break;  // any one of them
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

// From one tile that has everything, elements together, to the tiles of a vector.
std::vector<tiled::RingCopy> to_vector(const TiledTensor& from, const TiledTensor& to) {
  std::vector<tiled::RingCopy> copies;
  const int source = std::countr_zero(from.owners());
  const std::int64_t first = first_byte(from);
  for (int tile = 0; tile < to.vector_tiles(); ++tile) {
    const std::int32_t words = (to.run_of(tile) + kWord - 1) / kWord;
    copies.push_back({source, tiled::mask_of(tile), words_at(from, first + std::int64_t{tile} * to.run, words),
                      words_at(to, 0, words)});
  }
  return copies;
}

// A vector's runs together on the tile of an image of one pixel; in work by slices there may be several.
std::vector<tiled::RingCopy> vector_to_pixel(const TiledTensor& from, const TiledTensor& to) {
  std::vector<tiled::RingCopy> copies;
  const std::int64_t first = first_byte(to);
  for (int tile = 0; tile < from.vector_tiles(); ++tile) {
    const std::int32_t words = (from.run_of(tile) + kWord - 1) / kWord;
    copies.push_back(
        {tile, to.owners(), words_at(from, 0, words), words_at(to, first + std::int64_t{tile} * from.run, words)});
  }
  return copies;
}

}  // namespace

Result<std::int32_t> Builder::any_layout(std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const Value found, value(source));
  return found.padding == Padding{} ? Result<std::int32_t>(found.tensor) : grid(source);
}

// `copies_of` makes the list of copies when both tensors are cut.
std::int32_t Builder::add_layout(std::int32_t from, TiledTensor tensor, CopiesOf copies_of) {
  const std::int32_t to = add_tensor(std::move(tensor));
  add_step(op_, RingCopies{}, {Read{from}}, {to}, [from, to, copies_of](Builder& builder, tiled::Step& step) {
    RingCopies work;
    work.copies = copies_of(builder.tensor(from), builder.tensor(to));
    if (builder.tensor(to).spread == Spread::kGrid) work.output = to;
    // As in Google's programs, whose rows these are where vectors are gathered.
    work.google_pace = builder.level() == tiled::Level::kAsGoogle && builder.tensor(from).spread == Spread::kVector;
    return set_ring_copies(builder, step, std::move(work));
  });
  layouts_.emplace_back(from, to);
  return to;
}

template <typename Fits>
std::optional<std::int32_t> Builder::known_layout(std::int32_t from, const Fits& fits) const {
  if (fits(tensor(from))) return from;
  for (const auto& [original, other] : layouts_) {
    if (original == from && fits(tensor(other))) return other;
  }
  return std::nullopt;
}

std::int32_t Builder::copies_of(std::int32_t from, tiled::TileMask tiles) {
  const auto known = known_layout(from, [&](const TiledTensor& tensor) {
    return tensor.spread == Spread::kCopies && (tensor.tiles & tiles) == tiles;
  });
  if (known) return *known;
  TiledTensor copies = like(tensor(from), tensor(from).height, tensor(from).width, tensor(from).channels);
  copies.spread = Spread::kCopies;
  copies.tiles = tiles;
  return add_layout(from, std::move(copies), to_copies);
}

Result<std::int32_t> Builder::copies(std::int32_t source, tiled::TileMask tiles) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, any_layout(source));
  return copies_of(from, tiles);
}

Result<std::int32_t> Builder::packed_copies(std::int32_t source, tiled::TileMask tiles) {
  REEF_ASSIGN_OR_RETURN(std::int32_t from, any_layout(source));
  if (!is_single_pixel(tensor(from))) {
    REEF_ASSIGN_OR_RETURN(from, vector(source));
  }
  return copies_of(from, tiles);
}

Result<std::int32_t> Builder::row_copies(std::int32_t source, tiled::TileMask tiles) {
  REEF_ASSIGN_OR_RETURN(std::int32_t from, any_layout(source));
  const std::int32_t channels = this->source(source).shape.last();
  if (tensor(from).channels == channels) return copies_of(from, tiles);
  const auto whole = known_layout(from, [&](const TiledTensor& tensor) {
    return tensor.spread == Spread::kCopies && (tensor.tiles & tiles) == tiles && is_single_pixel(tensor);
  });
  if (whole && channels % kWord == 0) {  // the same place, seen as pixels
    TiledTensor rows = tensor(*whole);
    const std::int32_t object = rows.object;
    rows.width = rows.channels / channels;
    rows.channels = rows.pitch = channels;
    const std::int32_t made = add_tensor(std::move(rows));
    program_.tensor(made).object = object;
    return made;
  }
  REEF_ASSIGN_OR_RETURN(from, grid(source));
  return copies_of(from, tiles);
}

// Any layout from any other.
Result<std::int32_t> Builder::rearranged(std::int32_t from, TiledTensor tensor) {
  Rearrangement what;
  what.operands = {Read{from}};
  what.output = add_tensor(std::move(tensor));
  what.source_of = in_order();
  const std::int32_t made = what.output;
  add_rearrangement(*this, op_, std::move(what));
  layouts_.emplace_back(from, made);
  return made;
}

Result<std::int32_t> Builder::vector(std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, any_layout(source));
  const auto known = known_layout(from, [](const TiledTensor& tensor) { return tensor.spread == Spread::kVector; });
  if (known) return *known;
  TiledTensor vector = like(tensor(from), 1, 1, static_cast<std::int32_t>(elements(tensor(from))));
  vector.spread = Spread::kVector;
  vector.run = tiled::vector_run(vector.channels);
  if (is_single_pixel(tensor(from))) return add_layout(from, std::move(vector), to_vector);
  return rearranged(from, std::move(vector));
}

Result<Value> Builder::image(std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const Value found, value(source));
  if (found.padding != Padding{}) return found;
  REEF_ASSIGN_OR_RETURN(const std::int32_t tensor, grid(source));
  return Value{tensor, {}};
}

Result<Value> Builder::image_for_windows(std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const Value found, image(source));
  const bool is_whole = slice_ && !tensor_uses_[at(found.tensor)].slice;
  if (!is_whole || tensor(found.tensor).height >= tiled::kTilesPerAxis) return found;
  if (found.padding != Padding{}) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t padded, grid(source));
    return Value{padded, {}};
  }
  Rearrangement what;
  what.operands = {Read{found.tensor}};
  REEF_ASSIGN_OR_RETURN(what.output, new_grid(source));
  what.source_of = in_order();
  const std::int32_t copy = what.output;
  add_rearrangement(*this, op_, std::move(what));
  return Value{copy, {}};
}

Result<std::int32_t> Builder::grid(std::int32_t source) {
  REEF_ASSIGN_OR_RETURN(const Value found, value(source));
  if (found.padding != Padding{}) {
    REEF_ASSIGN_OR_RETURN(const std::int32_t padded, make_padding_real(*this, source, found));
    set_value(source, {padded, {}});
    return padded;
  }
  REEF_ASSIGN_OR_RETURN(const Image image, image_of(this->source(source)));
  return grid(source, image);
}

Result<std::int32_t> Builder::grid(std::int32_t source, const Image& image) {
  REEF_ASSIGN_OR_RETURN(const std::int32_t from, any_layout(source));
  const auto known = known_layout(from, [&](const TiledTensor& tensor) {
    return tensor.spread == Spread::kGrid && Image{tensor.height, tensor.width, tensor.channels} == image;
  });
  if (known) return *known;
  TiledTensor grid = like(tensor(from), image.height, image.width, image.channels);
  if (tensor(from).spread == Spread::kVector && is_single_pixel(grid)) {
    return add_layout(from, std::move(grid), vector_to_pixel);
  }
  return rearranged(from, std::move(grid));
}

}  // namespace reef::lower

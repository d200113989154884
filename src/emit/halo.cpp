// SPDX-License-Identifier: Apache-2.0
// The halos of a tensor: rows from the tiles above and below first, then columns from left and right.
//
// Columns are exchanged over all rows that a tile needs, those that it has just received among them; so corners need no
// exchange of their own, and the columns wait for the rows. What lies outside of the image is filled with the zero
// point by the last tile that has data, which makes padding. A halo wider than what the neighbour owns is passed on by
// that neighbour: it waits for its own halo before it sends (tiled/axis_partition.h makes room for that).
//
// A mesh instruction sends from one place and receives to another; tiles at the borders only do one of both. Pixels go
// in blocks of as many channels as are finished at a time (16 words of a convolution's results, one of element-wise
// ones), so that the first can leave while the others are computed. Waits, before block j is sent:
//   AVDATA            the tile's own pixels of the block are computed
//   MESH_N_IN, S_IN   the rows of the block have come (columns only)
//   own direction     the halo to be passed on has come
// Receiving needs no wait: nothing else uses a halo's place before the barrier that follows, nor after the last one.
//
// How it is known: as Google's newest compiler does it (docs/hardware/google_programs.md#halo-exchange,
// docs/hardware/google_heads.md#grids-smaller-than-4-x-4), instruction by instruction on networks with even and uneven
// maps. Google's totals assume that every tile receives whenever one does; ours are counted for each tile, which also
// covers maps where some receive nothing.
#include <optional>
#include <tuple>

#include "emit/blocks.h"
#include "isa/mesh.h"

namespace reef::emit {
namespace {

using tiled::AxisPartition;

// What one tile does in one direction.
struct Exchange {
  struct Side {
    std::int64_t word = 0;
    std::vector<Dim> dims;  // within a block of channels
    friend bool operator==(const Side&, const Side&) = default;
  };
  std::optional<Side> send, receive;
  bool fills = false;
  // Counter and what it must have reached before the first block is sent.
  struct Need {
    TileCounter counter;
    std::int64_t total, increment;
    friend bool operator==(const Need&, const Need&) = default;
  };
  std::vector<Need> needs;
  friend bool operator==(const Exchange&, const Exchange&) = default;
};

class HaloExchange {
 public:
  HaloExchange(ProgramWriter& writer, const TiledTensor& tensor, const OwnPixels* own)
      : writer_(writer),
        tensor_(tensor),
        own_(own),
        words_(tensor.pixel_words()),
        pitch_words_(tensor.pitch / chip::kNarrowWordBytes),
        block_words_(own == nullptr ? OwnPixels{}.block_words : own->block_words) {}

  void write() {
    const AxisPartition &rows = tensor_.rows, &columns = tensor_.columns;
    for (int t = 0; t < chip::kTiles; ++t) {
      north_in_[at(t)] = writer_.total(TileCounter::kMeshNorthIn, t);
      south_in_[at(t)] = writer_.total(TileCounter::kMeshSouthIn, t);
    }
    if (rows.has_after()) vertical(Opcode::kMeshNorth);
    if (rows.has_before()) vertical(Opcode::kMeshSouth);
    if (columns.has_after()) horizontal(Opcode::kMeshWest);
    if (columns.has_before()) horizontal(Opcode::kMeshEast);
  }

 private:
  std::int64_t row_words(int column) const { return std::int64_t{tensor_.columns.length(column)} * pitch_words_; }
  std::int64_t first_word() const { return tensor_.address / chip::kNarrowWordBytes; }
  std::int32_t blocks() const { return (words_ + block_words_ - 1) / block_words_; }
  bool in_blocks() const { return blocks() > 1; }

  static void add(std::vector<Dim>& dims, std::int64_t stride, std::int64_t count) {
    if (count > 1) dims.push_back(step(stride, count));
  }
  // Pixels of a rectangle: a block of channels, columns, rows.
  std::vector<Dim> rectangle(int column, std::int32_t width, std::int32_t height) const {
    std::vector<Dim> dims;
    dims.reserve(3);
    add(dims, 1, std::min(words_, block_words_));
    add(dims, pitch_words_, width);
    add(dims, row_words(column), height);
    if (dims.empty() && !in_blocks()) dims.push_back(step(1, 1));
    return dims;
  }

  bool owns(int row, int column) const {
    return tensor_.rows.tile(row).own() > 0 && tensor_.columns.tile(column).own() > 0;
  }
  void need_own_pixels(int row, int column, Exchange& exchange) const {
    if (own_ == nullptr || !owns(row, column)) return;
    exchange.needs.push_back(
        {TileCounter::kAvdata, own_->first[at(chip::kTileColumns * row + column)], own_->increment});
  }
  void need_passed_on(Opcode opcode, int tile, Exchange& exchange) const {
    const TileCounter counter = isa::mesh::in_counter(opcode);
    exchange.needs.push_back({counter, writer_.total(counter, tile) + 1, 1});
  }

  static std::int32_t sent_to(const AxisPartition& axis, bool has_neighbour, int neighbour, bool its_after) {
    if (!has_neighbour || axis.is_local) return 0;
    return its_after ? axis.tile(neighbour).after : axis.tile(neighbour).before;
  }

  // Rows between the tiles of a column. North: a tile's first rows are what the tile above has behind its own.
  Exchange rows_of(Opcode opcode, int row, int column) const {
    const AxisPartition& axis = tensor_.rows;
    const bool north = opcode == Opcode::kMeshNorth;
    const tiled::TileShare& share = axis.tile(row);
    const int neighbour = north ? row - 1 : row + 1;
    const bool has_neighbour = neighbour >= 0 && neighbour < chip::kTileRows;
    const std::int32_t sent = sent_to(axis, has_neighbour, neighbour, north);
    const std::int32_t received = north ? share.after : share.before;
    const std::int32_t own = axis.place(row, share.begin);
    const std::int32_t from = north ? own : own + share.own() - sent;
    const std::int32_t to = north ? own + share.own() : own - received;
    const tiled::TileShare& columns = tensor_.columns.tile(column);
    const std::int32_t width = columns.own();
    const std::int64_t first = first_word() + std::int64_t{tensor_.columns.place(column, columns.begin)} * pitch_words_;
    Exchange exchange;
    if (received > 0) {
      exchange.receive = {first + to * row_words(column), rectangle(column, width, received)};
      exchange.fills = axis.is_local || row == (north ? axis.last_owner() : 0);
    }
    if (sent > 0) {
      exchange.send = {first + from * row_words(column), rectangle(column, width, sent)};
      if (sent > share.own()) need_passed_on(opcode, chip::kTileColumns * row + column, exchange);
      need_own_pixels(row, column, exchange);
    }
    return exchange;
  }

  Exchange columns_of(Opcode opcode, int row, int column) const {
    const AxisPartition& axis = tensor_.columns;
    const bool west = opcode == Opcode::kMeshWest;
    const tiled::TileShare& share = axis.tile(column);
    const tiled::TileShare& rows = tensor_.rows.tile(row);
    const int neighbour = west ? column - 1 : column + 1;
    const bool has_neighbour = neighbour >= 0 && neighbour < chip::kTileColumns;
    const std::int32_t sent = sent_to(axis, has_neighbour, neighbour, west);
    const std::int32_t received = west ? share.after : share.before;
    const std::int32_t own = axis.place(column, share.begin);
    const std::int32_t from = west ? own : own + share.own() - sent;
    const std::int32_t to = west ? own + share.own() : own - received;
    const std::int64_t first = first_word() + tensor_.rows.place(row, rows.needed_begin) * row_words(column);
    const int tile = chip::kTileColumns * row + column;
    Exchange exchange;
    if (received > 0) {
      exchange.receive = {first + std::int64_t{to} * pitch_words_, rectangle(column, received, rows.needed())};
      exchange.fills = axis.is_local || column == (west ? axis.last_owner() : 0);
    }
    if (sent > 0) {
      exchange.send = {first + std::int64_t{from} * pitch_words_, rectangle(column, sent, rows.needed())};
      if (sent > share.own()) need_passed_on(opcode, tile, exchange);
      need_own_pixels(row, column, exchange);
      if (share.own() > 0 && rows.before > 0) need_rows(TileCounter::kMeshNorthIn, north_in_, tile, exchange);
      if (share.own() > 0 && rows.after > 0) need_rows(TileCounter::kMeshSouthIn, south_in_, tile, exchange);
    }
    return exchange;
  }
  using TileTotals = std::array<std::int64_t, chip::kTiles>;
  static void need_rows(TileCounter counter, const TileTotals& before, int tile, Exchange& exchange) {
    exchange.needs.push_back({counter, before[at(tile)] + 1, 1});
  }

  void vertical(Opcode opcode) {
    TileMask mask = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      const int row = chip::tile_row(t), column = chip::tile_column(t);
      if (tensor_.columns.tile(column).own() > 0 && row <= tensor_.rows.last_owner()) mask |= tiled::mask_of(t);
    }
    exchange(opcode, mask, [&](int t) { return rows_of(opcode, chip::tile_row(t), chip::tile_column(t)); });
  }

  // Tile rows that need different rows of the image are exchanged one after the other.
  void horizontal(Opcode opcode) {
    using Rows = std::tuple<std::int32_t, std::int32_t>;
    std::vector<std::pair<Rows, TileMask>> row_classes;
    for (int row = 0; row < chip::kTileRows; ++row) {
      const tiled::TileShare& share = tensor_.rows.tile(row);
      if (!share.is_read) continue;
      const Rows rows{tensor_.rows.place(row, share.needed_begin), share.needed()};
      auto found = std::find_if(row_classes.begin(), row_classes.end(), [&](const auto& c) { return c.first == rows; });
      if (found == row_classes.end()) found = row_classes.insert(found, {rows, TileMask{0}});
      for (int column = 0; column <= tensor_.columns.last_owner(); ++column) {
        found->second |= tiled::mask_of(chip::kTileColumns * row + column);
      }
    }
    for (const auto& [rows, mask] : row_classes) {
      exchange(opcode, mask, [&](int t) { return columns_of(opcode, chip::tile_row(t), chip::tile_column(t)); });
    }
  }

  template <typename ExchangeOf>
  void exchange(Opcode opcode, TileMask mask, const ExchangeOf& exchange_of) {
    for_each_class(mask, exchange_of, [&](TileMask tiles, const Exchange& what) {
      if (what.send || what.receive) emit(opcode, tiles, what);
    });
  }

  void emit(Opcode opcode, TileMask tiles, const Exchange& what) {
    namespace m = isa::mesh;
    Draft draft(opcode);
    draft.tiles(tiles);
    if (what.receive) {
      draft.nest(m::kOut, over_blocks(*what.receive))
          .signal(m::producers(opcode)[1], static_cast<int>(what.receive->dims.size()));
    }
    if (what.send) {
      draft.nest(m::kIn, over_blocks(*what.send));
      const int level = static_cast<int>(what.send->dims.size());
      for (const Exchange::Need& need : what.needs) draft.wait(need.counter, {level, need.total, need.increment});
    }
    if (what.fills) {
      draft.set(m::kFill).set(m::kFillValue, static_cast<std::int64_t>(tensor_.zero_point) * 0x01010101);
    }
    writer_.add(draft);
  }

  LoopNest over_blocks(const Exchange::Side& side) const {
    std::vector<Dim> dims = side.dims;
    if (!in_blocks()) return LoopNest(side.word, std::move(dims));
    const int outer = static_cast<int>(dims.size());
    dims.push_back(step(block_words_, blocks()));
    const std::int32_t rest = words_ % block_words_;
    LoopNest nest(side.word, std::move(dims));
    if (rest != 0) nest.clip(outer, rest);
    return nest;
  }

  ProgramWriter& writer_;
  const TiledTensor& tensor_;
  const OwnPixels* own_;
  const std::int32_t words_;        // of a pixel
  const std::int32_t pitch_words_;  // from pixel to pixel
  const std::int32_t block_words_;
  TileTotals north_in_{}, south_in_{};  // before the exchange
};

}  // namespace

void exchange_halo(ProgramWriter& writer, const TiledTensor& tensor, const OwnPixels* own) {
  if (tensor.has_halo() && !tensor.is_part) HaloExchange(writer, tensor, own).write();
}

void emit_step(Emission& to, const tiled::HaloUpdate& update) {
  to.writer.barrier();
  exchange_halo(to.writer, to.program.tensor(update.tensor), nullptr);
}

}  // namespace reef::emit

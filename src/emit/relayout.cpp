// SPDX-License-Identifier: Apache-2.0
// From pixels on the grid to channels in the tiles: after it, every tile has all pixels of its run of channels.
//
// Two phases, over the mesh (mesh_paths.h):
//   1  along the columns of tiles: tile (r, c) gets the channels of all tiles of row r, for all rows of the image and
//      the columns that tile column c owns (the strip)
//   2  along the rows of tiles: out of the strips of its row, each tile gets its own channels (gathered)
// What a tile has itself it copies, through two lines of wide memory: one is filled while the other is read. Waits of
// such a copy: NARROW_TO_WIDE, the line is filled; WIDE_TO_NARROW, the line before last is read.
// A fence of each tile alone separates the phases: words for a tile that is not there yet wait on their way.
//
// The identity is not needed here; Google's compiler makes it at this point for operators that follow.
//
// How it is known: Google's newest compiler's instructions, row for row, on whole networks
// (docs/hardware/google_heads.md#re-layout-from-space-to-channels) with channels that are whole runs. Other numbers of
// channels, images with halos or in slots of a larger tensor are our own.
#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/mesh_paths.h"
#include "isa/movers.h"

namespace reef::emit {
namespace {

using tiled::ChannelRuns;

// Dimensions of one step are left out but for the innermost.
std::vector<Dim> without_single_steps(std::initializer_list<Dim> dims) {
  std::vector<Dim> result;
  for (const Dim& dim : dims) {
    if (dim.count > 1 || result.empty()) result.push_back(dim);
  }
  return result;
}

// The steps of so many inner dimensions as fit into a line make one.
struct LineCut {
  int level = 0;
  std::int64_t words = 1;
};
LineCut line_cut(const std::vector<Dim>& dims, std::int64_t most) {
  LineCut cut;
  for (const Dim& dim : dims) {
    if (cut.words * dim.count > most) break;
    cut.words *= dim.count;
    ++cut.level;
  }
  return cut;
}

class RelayoutWriter : BlockWriter {
 public:
  RelayoutWriter(Emission& to, const tiled::Relayout& step)
      : BlockWriter(to),
        image_(to.program.tensor(step.input)),
        runs_(step.runs),
        strip_(to.program.address_of(step.strip) / kWord),
        gathered_(to.program.address_of(step.gathered) / kWord),
        small_words_(to.program.address_of(step.words) / kWord),
        two_lines_(to.program.line_of(step.two_lines)),
        identity_(step.identity) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    if (identity_.words != tiled::kNowhere) {
      make_identity(writer_, program_, identity_);
      writer_.tile_fence(kAllUnits, 0);
    }
    along_columns();
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    along_rows();
  }

 private:
  static int tile_at(int row, int column) { return chip::kTileColumns * row + column; }
  const tiled::TileShare& rows_of(int row) const { return image_.rows.tile(row); }
  const tiled::TileShare& columns_of(int column) const { return image_.columns.tile(column); }
  bool has_pixels(int row, int column) const { return rows_of(row).own() > 0 && columns_of(column).own() > 0; }
  std::int64_t relay(Opcode opcode) const {
    const int pair = opcode == Opcode::kMeshNorth   ? 0
                     : opcode == Opcode::kMeshSouth ? 1
                     : opcode == Opcode::kMeshWest  ? 2
                                                    : 3;
    return small_words_ + 2 * pair;
  }
  // Tiles of a row or column from one to another, both included.
  template <typename TileOf>
  static std::vector<int> path(int from, int to, const TileOf& tile_of) {
    std::vector<int> tiles;
    for (int k = from; k != to; k += from < to ? 1 : -1) tiles.push_back(tile_of(k));
    tiles.push_back(tile_of(to));
    return tiles;
  }

  // ---- Copies inside a tile ----

  // `in_turn`: more copies of this tile follow, or came before.
  std::vector<Draft> copy(int tile, const Words& from, LineCut from_cut, const Words& to, LineCut to_cut,
                          bool in_turn) {
    namespace m = isa::movers;
    const std::int64_t lines = from.count() / from_cut.words;
    const bool alternates = in_turn || lines > 1;
    const LoopNest used =
        alternates ? LoopNest(two_lines_, {repeat(lines)}).swap(0, 1) : LoopNest(two_lines_, {step(1, 1)});
    Copied& before = copied_[at(tile)];
    Draft fill(Opcode::kNarrowToWide);
    fill.nest(m::kToWideIn, LoopNest(from.first, from.dims))
        .nest(m::kToWideOut, used)
        .set(m::kToWideLineLevel, from_cut.level)
        .signal(m::kSignalNarrowToWide, 0);
    if (alternates) fill.wait(TileCounter::kWideToNarrow, {0, before.read - 1, 1}, Gate::kWriting);
    // One count for each line; where there is only one, nobody looks at them.
    const int read_level = alternates ? to_cut.level : static_cast<int>(to.dims.size()) - 1;
    Draft read(Opcode::kWideToNarrow);
    read.nest(m::kToNarrowIn, used)
        .nest(m::kToNarrowOut, LoopNest(to.first, to.dims))
        .set(m::kToNarrowLineLevel, to_cut.level)
        .wait(TileCounter::kNarrowToWide, {0, before.filled + 1, 1})
        .signal(m::kSignalWideToNarrow, read_level);
    before.filled += lines;
    before.read += lines;
    return {fill, read};
  }
  void start_counting() {
    for (int t = 0; t < chip::kTiles; ++t) {
      copied_[at(t)] = {writer_.total(TileCounter::kNarrowToWide, t), writer_.total(TileCounter::kWideToNarrow, t)};
    }
  }

  // ---- Phase 1 ----

  // Words of the image: `words` channels of all pixels that a tile owns, from word `channel` on.
  std::vector<Dim> pixels(int row, int column, Dim within, Dim blocks) const {
    const std::int64_t pitch = image_.pitch / kWord, line = image_.row_bytes(column) / kWord;
    const std::int64_t width = columns_of(column).own(), height = rows_of(row).own();
    const bool contiguous = line == pitch * width || height == 1;
    if (contiguous) return without_single_steps({within, blocks, step(pitch, width * height)});
    return without_single_steps({within, blocks, step(pitch, width), step(line, height)});
  }
  std::int64_t first_pixel(int row, int column, int channels_of_row) const {
    return image_.first_own_byte(row, column) / kWord +
           std::int64_t{channels_of_row} * chip::kTileColumns * runs_.run_words;
  }
  std::int64_t strip_word(int source_row, int column, int row) const {
    return strip_ + std::int64_t{rows_of(source_row).begin} * columns_of(column).own() * runs_.words_of_row(row);
  }

  // What a tile owns itself of its row's channels: lines of at most 64 channel words.
  void copy_own_pixels(TileMoves& moves, int row, int column) {
    const std::int64_t all = runs_.words_of_row(row), whole = all / kLineWords, rest = all % kLineWords;
    const std::int64_t count = std::int64_t{rows_of(row).own()} * columns_of(column).own();
    const std::int64_t from = first_pixel(row, column, row), to = strip_word(row, column, row);
    const bool both = whole > 0 && rest > 0;
    const auto add = [&](std::int64_t skip, std::int64_t words, std::int64_t blocks) {
      const Words source{from + skip, pixels(row, column, step(1, words), step(words, blocks))};
      std::vector<Dim> target = without_single_steps({step(1, words), step(words, blocks * count)});
      if (both) target = without_single_steps({step(1, words), step(words, blocks), step(all, count)});
      LineCut source_cut = line_cut(source.dims, kLineWords);
      LineCut target_cut = line_cut(target, source_cut.words);
      if (target_cut.words != source_cut.words) source_cut = target_cut = {1, words};
      moves.add_copy(tile_at(row, column),
                     copy(tile_at(row, column), source, source_cut, {to + skip, target}, target_cut, both));
    };
    if (whole > 0) add(0, kLineWords, whole);
    if (rest > 0) add(kLineWords * whole, rest, 1);
  }

  void along_columns() {
    start_counting();
    TileMoves copies(writer_, Opcode::kMeshSouth, 0);
    for (int row = 0; row < runs_.rows(); ++row) {
      for (int column = 0; column < chip::kTileColumns; ++column) {
        copies.begin_unit();
        if (has_pixels(row, column)) copy_own_pixels(copies, row, column);
      }
    }
    std::move(copies).write();
    for (const Opcode opcode : {Opcode::kMeshSouth, Opcode::kMeshNorth}) {
      TileMoves moves(writer_, opcode, relay(opcode));
      for (int row = 0; row < runs_.rows(); ++row) {
        for (int column = 0; column < chip::kTileColumns; ++column) {
          moves.begin_unit();
          for_each_source(row, opcode == Opcode::kMeshSouth, [&](int source) {
            if (has_pixels(source, column)) add_rows(moves, source, row, column);
          });
        }
      }
      std::move(moves).write();
    }
  }
  // The nearest first.
  template <typename Use>
  static void for_each_source(int to, bool from_below, const Use& use) {
    if (from_below) {
      for (int source = to - 1; source >= 0; --source) use(source);
    } else {
      for (int source = to + 1; source < tiled::kTilesPerAxis; ++source) use(source);
    }
  }
  void add_rows(TileMoves& moves, int source, int row, int column) {
    const std::int64_t words = runs_.words_of_row(row);
    std::vector<Dim> dims = pixels(source, column, step(1, words), step(0, 1));
    if (dims.size() == 2) dims = joined_dims({dims[0], dims[1]});
    const std::int64_t count = std::int64_t{rows_of(source).own()} * columns_of(column).own();
    moves.add_path(path(source, row, [&](int k) { return tile_at(k, column); }),
                   {first_pixel(source, column, row), std::move(dims)},
                   {strip_word(source, column, row), {step(1, words * count)}});
  }

  // ---- Phase 2 ----

  std::int64_t gathered_word(int source_column) const {
    return gathered_ + std::int64_t{columns_of(source_column).begin} * runs_.pitch_words();
  }

  void along_rows() {
    start_counting();
    for (const Opcode opcode : {Opcode::kMeshEast, Opcode::kMeshWest}) {
      TileMoves moves(writer_, opcode, relay(opcode));
      for (int row = 0; row < runs_.rows(); ++row) {
        moves.begin_unit();
        for (int column = 0; column < chip::kTileColumns; ++column) {
          if (runs_.words_of(tile_at(row, column)) == 0) continue;
          if (opcode == Opcode::kMeshEast && columns_of(column).own() > 0) copy_own_columns(moves, row, column);
          for_each_source(column, opcode == Opcode::kMeshEast, [&](int source) {
            if (columns_of(source).own() > 0) add_columns(moves, row, source, column);
          });
        }
      }
      std::move(moves).write();
    }
  }

  void add_columns(TileMoves& moves, int row, int source, int column) {
    const std::int64_t words = runs_.words_of(tile_at(row, column)), pitch = runs_.pitch_words();
    const std::int64_t width = columns_of(source).own(), height = image_.height;
    moves.add_path(
        path(source, column, [&](int k) { return tile_at(row, k); }),
        {strip_ + std::int64_t{column} * runs_.run_words,
         joined_dims({step(1, words), step(runs_.words_of_row(row), height * width)})},
        {gathered_word(source), joined_dims({step(1, words), step(pitch, width), step(image_.width * pitch, height)})});
  }

  // Several rows of the image share a line where they fill less than one.
  void copy_own_columns(TileMoves& moves, int row, int column) {
    const int tile = tile_at(row, column);
    const std::int64_t words = runs_.words_of(tile);
    const std::int64_t strip_pitch = runs_.words_of_row(row), pitch = runs_.pitch_words();
    const std::int64_t width = columns_of(column).own(), height = image_.height, row_words = image_.width * pitch;
    const std::int64_t from = strip_ + std::int64_t{column} * runs_.run_words, to = gathered_word(column);
    if (width * words <= kLineWords) {
      std::int64_t together = 1;
      for (std::int64_t k = 1; k <= height; ++k) {
        if (height % k == 0 && k * width * words <= kLineWords) together = k;
      }
      const std::int64_t lines = height / together;
      const Words source{from, without_single_steps({step(1, words), step(strip_pitch, width * together),
                                                     step(strip_pitch * width * together, lines)})};
      Words target{to, joined_dims({step(1, words), step(pitch, width)})};
      if (together > 1) target.dims.push_back(step(row_words, together));
      const int target_level = static_cast<int>(target.dims.size());
      if (lines > 1) target.dims.push_back(step(row_words * together, lines));
      const std::int64_t in_line = words * width * together;
      moves.add_copy(
          tile, copy(tile, source, {width * together == 1 ? 1 : 2, in_line}, target, {target_level, in_line}, false));
      return;
    }
    for (std::int64_t skip = 0; skip < words; skip += kLineWords) {
      const std::int64_t part = std::min<std::int64_t>(kLineWords, words - skip);
      const Words source{from + skip, without_single_steps({step(1, part), step(strip_pitch, width * height)})};
      const Words target{to + skip, without_single_steps({step(1, part), step(pitch, width), step(row_words, height)})};
      moves.add_copy(tile, copy(tile, source, {1, part}, target, {1, part}, words > kLineWords));
    }
  }

  struct Copied {
    std::int64_t filled = 0, read = 0;  // counters, with all copies so far
  };
  const TiledTensor& image_;
  const ChannelRuns runs_;
  const std::int64_t strip_, gathered_, small_words_;
  const std::int32_t two_lines_;
  const tiled::Identity identity_;
  std::array<Copied, chip::kTiles> copied_{};
};

}  // namespace

void emit_step(Emission& to, const tiled::Relayout& step) { RelayoutWriter(to, step).write(); }

}  // namespace reef::emit

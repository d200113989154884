// SPDX-License-Identifier: Apache-2.0
// The same bytes in another shape, over the mesh (tiled/reflow.h has the three phases).
//
// Along an axis, words go straight: a tile sends, tiles between pass on, a tile receives. Nothing but what passes
// through a tile is counted: words come in order, and a unit that receives waits for them. A tile that passes on does
// so through two slots of 4 words; its counters then say more than those of the others. A fence sets all to the same
// before the next transfer; tiles that have that value already are left out of it.
// What a tile has itself is copied by its tensor unit, with the identity as parameters.
//
// How it is known: Google's newest compiler's instructions, row for row, in the four networks of the collection that
// reshape images (3x3x1, 64x64x1, 1x256x16 and 118x100x8); it makes the identity line twice where nothing before has.
// The order of transfers that none of these has is our own, as are results on the grid of several rows.

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/mesh_paths.h"
#include "isa/fence.h"
#include "isa/mesh.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace f = isa::tile_fence;

using tiled::ReflowStrips;

constexpr std::int64_t kSlotWords = tiled::kReflowRelayWords / 2;

constexpr int tile_at(int row, int column) { return chip::kTileColumns * row + column; }

// A block of words in a tile's memory: some of each pixel, of some columns and rows.
struct Block {
  std::int64_t word = 0;  // the first
  Dim pixel, columns, rows;
  std::int64_t buffer_bytes = 0;  // of everything that it is a part of

  std::int64_t words() const { return pixel.count * columns.count * rows.count; }
  // Of a mover: steps that are made once left out.
  LoopNest nest() const {
    std::vector<Dim> dims;
    for (const Dim& dim : {pixel, columns, rows}) {
      if (dim.count > 1) dims.push_back(dim);
    }
    if (dims.empty()) dims.push_back({1, 1, false});
    return LoopNest(word, dims);
  }
};
Block run_of_words(std::int64_t word, std::int64_t words, std::int64_t buffer_bytes) {
  const Dim once = step(buffer_bytes / kWord, 1);
  return {word, step(1, words), once, once, buffer_bytes};
}

struct Transfer {
  int from = 0, to = 0;  // tiles of one row or of one column
  Block source, target;
};

class ReflowWriter : BlockWriter {
 public:
  ReflowWriter(Emission& to, const tiled::Reflow& step)
      : BlockWriter(to),
        step_(step),
        input_(to.program.tensor(step.input)),
        output_(to.program.tensor(step.output)),
        strips_(ReflowStrips::of(input_, output_)),
        base_(to.program.address_of(step.strips) / kWord),
        relay_(to.program.address_of(step.relay) / kWord) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    if (makes_identity()) {
      make_identity_line();
    } else {
      writer_.tile_fence(kAllUnits, kCountersOfTiles);
    }
    gather_rows();
    end_phase(0);
    exchange_units();
    end_phase(0);
    if (makes_identity()) make_identity_line();
    spread_rows();
    end_phase(kCountersOfTiles);
  }

 private:
  bool makes_identity() const { return step_.identity.words != tiled::kNowhere; }
  void make_identity_line() {
    make_identity(writer_, program_, step_.identity, false);
    writer_.tile_fence(kAllUnits, 0);
  }

  // ---- Transfers ----

  // All in one direction, over equally many tiles.
  void write_transfers(Opcode opcode, const std::vector<Transfer>& transfers) {
    if (transfers.empty()) return;
    namespace m = isa::mesh;
    std::vector<Parcel> sends, relays, receives;
    for (const Transfer& t : transfers) {
      sends.push_back({t.from, Draft(opcode).nest(m::kIn, t.source.nest()), t.source.buffer_bytes});
      const int hop = opcode == Opcode::kMeshNorth   ? -chip::kTileColumns
                      : opcode == Opcode::kMeshSouth ? chip::kTileColumns
                      : opcode == Opcode::kMeshWest  ? -1
                                                     : 1;
      for (int tile = t.from + hop; tile != t.to; tile += hop) {
        relays.push_back({tile, pass_on(opcode, tile, t.source.words()), 0});
      }
      receives.push_back({t.to, Draft(opcode).nest(m::kOut, t.target.nest()), t.target.buffer_bytes});
    }
    write_parcels(sends);
    const int first = write_parcels(relays);
    write_parcels(receives);
    counted_apart_ = 0;
    if (!relays.empty()) align_counters(opcode, first);
  }

  struct Parcel {
    int tile = 0;
    Draft draft;
    std::int64_t buffer_bytes = 0;
  };
  // One instruction for all tiles that do the same with buffers of the same size, in the order of the first of each.
  // The lowest tile.
  int write_parcels(const std::vector<Parcel>& parcels) {
    TileMask mask = 0;
    for (const Parcel& parcel : parcels) mask |= tiled::mask_of(parcel.tile);
    const auto of = [&](int tile) -> const Parcel& {
      return *std::find_if(parcels.begin(), parcels.end(), [&](const Parcel& p) { return p.tile == tile; });
    };
    int lowest = chip::kTiles;
    for_each_class(
        mask, [&](int tile) { return std::pair(of(tile).draft.instruction(), of(tile).buffer_bytes); },
        [&](TileMask tiles, const auto&) {
          int tile = 0;
          while ((tiles & tiled::mask_of(tile)) == 0) ++tile;
          lowest = std::min(lowest, tile);
          writer_.add(Draft(of(tile).draft).tiles(tiles));
        });
    return lowest;
  }

  Draft pass_on(Opcode opcode, int tile, std::int64_t words) {
    namespace m = isa::mesh;
    const std::int64_t turns = (words + kSlotWords - 1) / kSlotWords, last = words - (turns - 1) * kSlotWords;
    LoopNest nest =
        words == 1 ? LoopNest(relay_, {step(1, 1)}) : LoopNest(relay_, {step(1, kSlotWords), repeat(turns)});
    nest.swap(1, kSlotWords);
    if (words > 1) nest.clip(1, last);
    const std::int64_t in = writer_.total(m::in_counter(opcode), tile),
                       out = writer_.total(m::out_counter(opcode), tile);
    return Draft(opcode)
        .nest(m::kIn, nest)
        .nest(m::kOut, nest)
        .wait(m::in_counter(opcode), {1, in + 1, 1})
        .wait(m::out_counter(opcode), {1, out - 1, 1}, Gate::kWriting)
        .signal(m::producers(opcode)[0], 1)
        .signal(m::producers(opcode)[1], 1);
  }

  // To what the first tile that passed something on has received.
  void align_counters(Opcode opcode, int first) {
    const TileCounter in = isa::mesh::in_counter(opcode), out = isa::mesh::out_counter(opcode);
    const std::int64_t count = writer_.total(in, first);
    TileMask others = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      if (writer_.total(in, t) != count || writer_.total(out, t) != count) others |= tiled::mask_of(t);
    }
    counted_apart_ = static_cast<TileMask>(~others);
    const isa::Unit unit = opcode == Opcode::kMeshNorth   ? isa::Unit::kMeshNorth
                           : opcode == Opcode::kMeshSouth ? isa::Unit::kMeshSouth
                           : opcode == Opcode::kMeshWest  ? isa::Unit::kMeshWest
                                                          : isa::Unit::kMeshEast;
    writer_.add(Draft(Opcode::kTileFence)
                    .set(f::kTiles, others)
                    .set(f::kReset, counter_mask(in) | counter_mask(out))
                    .set(f::kResetTo, count)
                    .set(f::kDrain, unit_mask(unit)));
  }

  void end_phase(std::uint32_t reset) {
    if (counted_apart_ != 0) {
      const auto others = static_cast<TileMask>(~counted_apart_);
      writer_.add(Draft(Opcode::kTileFence).set(f::kTiles, others).set(f::kDrain, kAllUnits));
    }
    counted_apart_ = 0;
    writer_.tile_fence(kAllUnits, reset);
  }

  // ---- Copies inside a tile ----

  Draft copy(const Block& from, const Block& to) const {
    namespace t = isa::tensor_op;
    const std::int64_t words = from.words();
    const auto bytes = [](const Dim& dim) { return step(dim.stride * kWord, dim.count); };
    const std::int64_t line = std::int64_t{program_.line_of(step_.identity.line)} * chip::kWideAddressUnitsPerLine;
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops({1, words})
        .nest(t::kIn, LoopNest(from.word * kWord, {bytes(from.pixel), repeat(1), bytes(from.columns), repeat(1),
                                                   bytes(from.rows), repeat(1), step(from.buffer_bytes, 1)}))
        .nest(t::kOut,
              LoopNest(to.word * kWord, {bytes(to.pixel), bytes(to.columns), bytes(to.rows), step(to.buffer_bytes, 1)}))
        .set(t::kPsumGroup2)
        .set(t::kAccumulateInside)
        .cells(kWord)
        .unscaled();
    if (words == 1) {
      return draft.nest(t::kParam, LoopNest(line, {step(chip::kWideAddressUnitsPerLine, 1)}))
          .nest(t::kPsum, LoopNest(0, {{1, 1, false}}))
          .set(t::kPsumGroupLevel, 1);
    }
    return draft.nest(t::kParam, LoopNest(line, {step(chip::kWideAddressUnitsPerLine, 1), repeat(words)}))
        .nest(t::kPsum, LoopNest(0, {repeat(words)}));
  }
  void write_copies(const std::vector<Transfer>& copies) {
    TileMask mask = 0;
    for (const Transfer& c : copies) mask |= tiled::mask_of(c.to);
    add_each(writer_, mask, [&](int tile) {
      const auto c = std::find_if(copies.begin(), copies.end(), [&](const Transfer& t) { return t.to == tile; });
      return copy(c->source, c->target);
    });
  }

  // ---- 1: rows of the image ----

  const tiled::TileShare& rows_of(int row) const { return input_.rows.tile(row); }
  const tiled::TileShare& columns_of(int column) const { return input_.columns.tile(column); }
  std::int64_t pixel_words() const { return input_.pitch / kWord; }

  // Where a unit lies in the strip of a row of tiles.
  std::int64_t strip_word(int row, std::int64_t unit) const {
    return base_ + (unit - strips_.row(row).held.begin) * strips_.unit_words;
  }

  void gather_rows() {
    for (int column = 0; column < chip::kTileColumns; ++column) {
      std::vector<Transfer> transfers;
      for (int row = 0; row < chip::kTileRows; ++row) {
        if (rows_of(row).own() == 0 || columns_of(column).own() == 0) continue;
        const std::int64_t width = columns_of(column).own(), height = rows_of(row).own();
        const std::int64_t line = input_.row_bytes(column) / kWord, own_bytes = line * kWord * input_.rows.length(row);
        const std::int64_t all = pixel_words() * input_.width;
        const Dim pixel = step(1, pixel_words());
        const std::int64_t to = strip_word(row, strips_.row(row).own.begin) + columns_of(column).begin * pixel_words();
        transfers.push_back({tile_at(row, column),
                             tile_at(row, 0),
                             {input_.first_own_byte(row, column) / kWord, pixel, step(pixel_words(), width),
                              step(line, height), own_bytes},
                             {to, pixel, step(pixel_words(), width), step(all, height), strips_.held_bytes(row)}});
      }
      if (column == 0) {
        write_copies(transfers);
      } else {
        write_transfers(Opcode::kMeshWest, transfers);
      }
    }
  }

  // ---- 2: between rows of tiles ----

  // What `to` wants of what `from` has.
  void exchange(Opcode opcode, int from, int to) {
    const tiled::Range& own = strips_.row(from).own;
    const tiled::Range range = strips_.row(to).wanted.within(own.begin, own.end);
    if (range.is_empty()) return;
    const std::int64_t count = range.end - range.begin, width = strips_.unit_words / pixel_words();
    const bool by_pixels = input_.height == 1;
    const auto block = [&](int row) {
      return Block{strip_word(row, range.begin), step(1, pixel_words()), step(pixel_words(), by_pixels ? count : width),
                   step(strips_.unit_words, by_pixels ? 1 : count), strips_.held_bytes(row)};
    };
    write_transfers(opcode, {{tile_at(from, 0), tile_at(to, 0), block(from), block(to)}});
  }
  void exchange_units() {
    for (int from = 0; from < chip::kTileRows; ++from) {
      for (int to = from + 1; to < chip::kTileRows; ++to) exchange(Opcode::kMeshSouth, from, to);
    }
    for (int from = chip::kTileRows - 1; from > 0; --from) {
      for (int to = from - 1; to >= 0; --to) exchange(Opcode::kMeshNorth, from, to);
    }
  }

  // ---- 3: to the tiles of the result ----

  Transfer part_of_row(int row, int column) const {
    const ReflowStrips::Strip& strip = strips_.row(row);
    // The row's part of the result begins somewhere in the first unit of the strip that it wants.
    const std::int64_t first =
        strip_word(row, strip.wanted.begin) + strip.begin - strip.wanted.begin * strips_.unit_words;
    const std::int64_t part_bytes = (strip.end - strip.begin) * kWord;
    const int tile = tile_at(row, column);
    Transfer transfer{tile_at(row, 0), tile, {}, {}};
    if (output_.spread == tiled::Spread::kVector) {
      const std::int64_t words = (output_.run_of(tile) + kWord - 1) / kWord;
      const std::int64_t from = first + std::int64_t{column} * output_.run / kWord;
      transfer.source = run_of_words(from, words, part_bytes);
      transfer.target = run_of_words(output_.address / kWord, words, std::min(output_.run, output_.pitch));
      return transfer;
    }
    const tiled::TileShare &columns = output_.columns.tile(column), &rows = output_.rows.tile(row);
    const std::int64_t pixel = output_.pitch / kWord, line = output_.row_bytes(column) / kWord;
    transfer.source = {first + columns.begin * pixel, step(1, pixel), step(pixel, columns.own()),
                       step(pixel * output_.width, rows.own()), part_bytes};
    transfer.target = {output_.first_own_byte(row, column) / kWord, step(1, pixel), step(pixel, columns.own()),
                       step(line, rows.own()), line * kWord * output_.rows.length(row)};
    return transfer;
  }
  void spread_rows() {
    const TileMask owners = output_.owners();
    for (int column = 0; column < chip::kTileColumns; ++column) {
      std::vector<Transfer> transfers;
      for (int row = 0; row < chip::kTileRows; ++row) {
        if ((owners & tiled::mask_of(tile_at(row, column))) != 0) transfers.push_back(part_of_row(row, column));
      }
      if (column == 0) {
        write_copies(transfers);
      } else {
        write_transfers(Opcode::kMeshEast, transfers);
      }
    }
  }

  const tiled::Reflow& step_;
  const TiledTensor& input_;
  const TiledTensor& output_;
  const ReflowStrips strips_;
  const std::int64_t base_, relay_;  // words
  TileMask counted_apart_ = 0;       // tiles that the last fence left out
};

// Behind it Google's programs have another fence, but for a softmax.
bool is_fenced_again(const tiled::TiledProgram& program, const tiled::Reflow& step) {
  for (std::size_t i = 0; i + 1 < program.steps.size(); ++i) {
    if (std::get_if<tiled::Reflow>(&program.steps[i].work) != &step) continue;
    const tiled::Work& next = program.steps[i + 1].work;
    return !std::holds_alternative<tiled::Softmax>(next) && !std::holds_alternative<tiled::SpreadSoftmax>(next) &&
           !std::holds_alternative<tiled::SmallSoftmax>(next);
  }
  return false;
}

}  // namespace

void emit_step(Emission& to, const tiled::Reflow& step) {
  ReflowWriter(to, step).write();
  if (is_fenced_again(to.program, step)) to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  const TiledTensor& output = to.program.tensor(step.output);
  if (output.spread == tiled::Spread::kGrid && output.has_halo()) exchange_halo(to.writer, output, nullptr);
}

}  // namespace reef::emit

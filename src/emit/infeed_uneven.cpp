// SPDX-License-Identifier: Apache-2.0
// Images of uneven sizes, as Google's compiler brings them in: as infeed.cpp does, but for
//   slots     of as many rows as make whole words. Each tile's begin with the word that has its first byte, so that all
//             its rows lie in its slots in the same way; the copy starts at that byte
//   streams   a row of tiles gets whole units of 8 bytes: one that it shares with the row of tiles above is popped
//   twice tiles     have shares of different sizes, each kind an instruction of its own
// What comes behind a tile's last row fills up one more slot, which nobody reads.
// Waits are those of infeed.cpp. The last slot is copied after everything has arrived.
//
// How it is known: three networks of the collection, row for row (118x100x1, 353x481x3 and 513x513x3).

#include "emit/blocks.h"
#include "emit/infeed_parts.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/tensor_op.h"
#include "tiled/uneven_input.h"

namespace reef::emit {
namespace {

using tiled::UnevenInput;

class UnevenInfeed : BlockWriter {
 public:
  UnevenInfeed(Emission& to, const tiled::Infeed& input)
      : BlockWriter(to),
        tensor_(to.program.tensor(input.tensor)),
        input_(input),
        slots_(UnevenInput::of(tensor_)),
        rows_(tiled::InputRows::of(tensor_)),
        buffer_(to.program.address_of(input.row_buffer)),
        lines_(to.program.line_of(input.row_lines)),
        identity_line_(to.program.line_of(input.identity)) {}

  void write() {
    make_identity(writer_, rows_, (buffer_ + 2 * slots_.slot_bytes) / kWord, identity_line_);
    TileMask several = 0;
    bool restarts = false;
    for (int t = 0; t < chip::kTiles; ++t) {
      const std::int32_t slots = share(t).slots;
      if (slots > 1) several |= tiled::mask_of(t);
      restarts |= slots > 2;
    }
    write_equal(several, [&](int tile) { return copy_first(tile); });
    request_input(to_, input_);
    if (restarts) writer_.tile_fence(0, counter_mask(TileCounter::kWideToNarrow));
    for (int t = 0; t < chip::kTiles; ++t) {
      words_before_[at(t)] = writer_.total(TileCounter::kWideToNarrow, t);
    }
    write_equal(tiled::kAllTiles, [&](int tile) { return read_lines(tile); });
    for (int row = 0; row < chip::kTileRows; ++row) spread(row);
    writer_.tile_fence(kAllUnits, 0);
    write_equal(tiled::kAllTiles, [&](int tile) { return copy_last(tile); });
  }

 private:
  UnevenInput::Share share(int tile) const {
    return slots_.share(tensor_, chip::tile_row(tile), chip::tile_column(tile));
  }
  template <typename DraftOf>
  void write_equal(TileMask tiles, const DraftOf& draft_of) {
    add_each(writer_, tiles, draft_of);
  }

  // ---- From the slots to the tensor ----

  // All slots but the last.
  Draft copy_first(int tile) const {
    const std::int64_t before = writer_.total(TileCounter::kWideToNarrow, tile);
    return copy(tile, 0, share(tile).slots - 1, slots_.rows, before + slots_.words);
  }
  Draft copy_last(int tile) const {
    const UnevenInput::Share mine = share(tile);
    const tiled::TileShare &ys = tensor_.rows.tile(chip::tile_row(tile)),
                           &xs = tensor_.columns.tile(chip::tile_column(tile));
    const std::int32_t full = mine.slots - 1, rows = ys.own() - full * slots_.rows;
    const std::int64_t bytes =
        mine.first_byte + std::int64_t{rows - 1} * rows_.bytes + std::int64_t{xs.own()} * tensor_.channels;
    const std::int64_t words = words_before_[at(tile)] + std::int64_t{full} * slots_.words;
    return copy(tile, full, 1, rows, words + (bytes + kWord - 1) / kWord);
  }

  // `slots` slots of `rows` rows each, from slot `first` on, the first of which is there when WIDE_TO_NARROW has
  // reached `words`.
  Draft copy(int tile, std::int32_t first, std::int32_t slots, std::int32_t rows, std::int64_t words) const {
    namespace t = isa::tensor_op;
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const std::int64_t from = buffer_ + std::int64_t{first % 2} * slots_.slot_bytes + share(tile).first_byte;
    const std::int32_t y = tensor_.rows.tile(row).begin + first * slots_.rows;
    const std::int64_t to = tensor_.byte_of(row, column, y, tensor_.columns.tile(column).begin);
    const std::int64_t line = tensor_.row_bytes(column), columns = tensor_.columns.tile(column).own();
    const std::int64_t identity = std::int64_t{identity_line_} * chip::kWideAddressUnitsPerLine;
    const std::int32_t channels = tensor_.channels;
    std::vector<Dim> pixels = {step(kWord, 1), step(kWord, columns), step(line, rows)};
    if (slots > 1) pixels.push_back(step(line * rows, slots));
    pixels.push_back(step(line * tensor_.rows.length(row), 1));
    const std::int64_t all_rows = std::int64_t{rows} * slots;
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops({channels, columns, rows, slots})
        .nest(t::kIn,
              LoopNest(from, {step(1, channels), step(channels, columns), step(rows_.bytes, rows), repeat(slots)})
                  .swap(3, slots_.slot_bytes))
        .nest(t::kOut, LoopNest(to, pixels))
        .nest(t::kParam, LoopNest(identity, {step(1, channels), repeat(columns), repeat(all_rows)}))
        .nest(t::kPsum, LoopNest(0, {{channels == 1 ? 1 : 0, channels, false}, repeat(columns), repeat(all_rows)}))
        .wait(TileCounter::kWideToNarrow, {3, words, slots_.words})
        .signal(t::kSignalAvdata, 3)
        .sums_inside()
        .cells(kWord)
        .unscaled()
        .set(t::kPsumGroupLevel, 1)
        .set(t::kLanesOff, 7)
        .set(t::kReduceDims, 1)
        .set(t::kScalingLevel, 3);
    return draft;
  }

  // ---- From the host to the slots ----

  LoopNest lines_nest(std::int64_t lines) const {
    if (slots_.lines == 1) return LoopNest(lines_, {repeat(lines)}).swap(0, 1);
    return lines_by_turns(lines_, lines, slots_.lines);
  }
  int lines_level() const { return slots_.lines == 1 ? 0 : 1; }

  Draft read_lines(int tile) const {
    namespace m = isa::movers;
    const UnevenInput::Share mine = share(tile);
    const std::int64_t first_word = buffer_ / kWord;
    Draft draft(Opcode::kWideToNarrow);
    draft.nest(m::kToNarrowIn, lines_nest(mine.lines))
        .nest(m::kToNarrowOut, LoopNest(first_word, {step(1, slots_.words), repeat(mine.filled)})
                                   .swap(1, slots_.slot_bytes / kWord)
                                   .clip(1, mine.last))
        .set(m::kToNarrowLineLevel, 2)
        .wait(TileCounter::kRingReadA, {lines_level(), writer_.total(TileCounter::kRingReadA, tile) + 1, 1})
        .wait(TileCounter::kAvdata, {1, avdata_before_copies(tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalWideToNarrow, 0);
    if (mine.skipped > 0) {
      draft.set(m::kSkip)
          .set(m::kSkipLevel, 2)
          .set(m::kSkipFirst, first_word)
          .set(m::kSkipWords, mine.skipped)
          .set(m::kSkipLast, first_word + mine.skipped - 1);
    }
    return draft;
  }
  // The copies of all slots but the last are counted in the total.
  std::int64_t avdata_before_copies(int tile) const {
    return writer_.total(TileCounter::kAvdata, tile) - (share(tile).slots - 1);
  }

  void spread(int row) {
    const auto tiles = static_cast<TileMask>(0xfu << (chip::kTileColumns * row));
    const UnevenInput::Share strip = slots_.share(tensor_, row, 0);
    const std::int64_t words = std::int64_t{slots_.lines} * kLineWords;
    writer_.add(Draft(Opcode::kRingReceiveA)
                    .tiles(tiles)
                    .nest(isa::ring::kReceiveOut, lines_nest(strip.lines))
                    .wait(TileCounter::kWideToNarrow, {lines_level(), -words, words}, Gate::kWriting)
                    .signal(isa::ring::kSignalRingReadA, lines_level()));
    send_units(writer_, strip.first_unit, strip.units, tiles);
  }

  const TiledTensor& tensor_;
  const tiled::Infeed& input_;
  const UnevenInput slots_;
  const tiled::InputRows rows_;
  const std::int32_t buffer_, lines_, identity_line_;
  std::array<std::int64_t, chip::kTiles> words_before_{};  // WIDE_TO_NARROW before anything came
};

}  // namespace

void infeed_uneven(Emission& to, const tiled::Infeed& input) { UnevenInfeed(to, input).write(); }

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// An input of any size, or some rows of it: a few rows at a time.
//
// Every row of tiles gets the rows that it has, as a transfer and a stream of its own, which the ring brings to all of
// its tiles:
//
//   host -> (DMA) -> activation buffer -> pop -> ring A -> wide lines -> wide_to_narrow -> slots -> copy -> tensor
//
// A slot holds as many rows of the image as make whole words of 4 bytes; there are two, so that the next one arrives
// while one is copied. Transfers begin and end at multiples of 8 bytes: the word in front of the first row is skipped;
// rows in front of the first that is wanted, which share a slot with it, come along and are not copied.
// The copy reads single bytes (images of 1 to 3 channels) or whole words.
//
// Waits:
//   copy                WIDE_TO_NARROW   the words of its slot are there
//   wide_to_narrow      RING_READ_A      the lines have come; AVDATA: the slot before last is copied, it is free
//   ring_receive        WIDE_TO_NARROW   the words of the lines before last are read, these lines are free
//   pop                 AVDATA_INFEED    the unit has come from the host
//   infeed              AVDATA_POP       the unit's place is free
// Slots are taken in turn: which one comes next goes on from one instruction to the next, until a fence.
//
// How it is known: slots of several rows, skipped words and all waits are as Google's newest compiler has them for
// images of uneven sizes. It has one transfer for all rows of tiles, and more about which words go where; that each row
// of tiles has a transfer of its own is our arrangement, checked on the virtual device only.

#include "emit/blocks.h"
#include "emit/infeed_parts.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/scalar.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

using tiled::InputSlots;

class SlotInfeed : BlockWriter {
 public:
  SlotInfeed(Emission& to, const tiled::Infeed& input)
      : BlockWriter(to),
        tensor_(to.program.tensor(input.tensor)),
        input_(input),
        slots_(InputSlots::of(tensor_)),
        rows_(tiled::InputRows::of(tensor_)),
        buffer_(to.program.address_of(input.row_buffer)),
        lines_(to.program.line_of(input.row_lines)),
        identity_line_(to.program.line_of(input.identity)) {}

  void write() {
    writer_.barrier();
    writer_.tile_fence(kAllUnits, kCountersOfTiles);  // everything is counted from 0, in all tiles
    make_identity(writer_, rows_, (buffer_ + 2 * slots_.bytes) / kWord, identity_line_);
    copy();
    begin_requests(to_, input_);
    for (int row = 0; row < chip::kTileRows; ++row) {
      const InputSlots::Strip strip = slots_.strip(tensor_, row);
      if (strip.slots > 0 && tiles_of(row) != 0) bring(row, strip);
    }
  }

 private:
  TileMask tiles_of(int row) const {
    return static_cast<TileMask>(tensor_.owners() & (0xfu << (chip::kTileColumns * row)));
  }
  std::int32_t slot_words() const { return slots_.bytes / kWord; }

  // ---- From the slots to the tensor ----

  // Rows of a tile's share that lie in the same slots.
  struct Copy {
    std::int32_t from = 0, to = 0;  // bytes
    std::int32_t columns = 0, rows = 0, slots = 0;
    std::int32_t row_bytes = 0;  // of the tensor
    std::int64_t words = 0;      // what WIDE_TO_NARROW must have reached for the first slot
    friend bool operator==(const Copy&, const Copy&) = default;
  };

  // The first slot by itself if it begins with rows that are not wanted, then those that are full, then the rest.
  std::vector<Copy> copies_of(int tile) const {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const InputSlots::Strip strip = slots_.strip(tensor_, row);
    const tiled::TileShare &ys = tensor_.rows.tile(row), &xs = tensor_.columns.tile(column);
    std::vector<Copy> copies;
    for (std::int32_t y = ys.begin; y < ys.end;) {
      const std::int32_t slot = (y - strip.first_row) / slots_.rows;
      const std::int32_t within = (y - strip.first_row) % slots_.rows;
      Copy copy;
      copy.rows = std::min(slots_.rows - within, ys.end - y);
      copy.slots = copy.rows == slots_.rows ? (ys.end - y) / slots_.rows : 1;
      copy.from = buffer_ + within * rows_.bytes + xs.begin * tensor_.channels;
      copy.to = tensor_.byte_of(row, column, y, xs.begin);
      copy.columns = xs.own();
      copy.row_bytes = tensor_.row_bytes(column);
      copy.words = std::min<std::int64_t>(std::int64_t{slot_words()} * (slot + 1), strip.words);
      copies.push_back(copy);
      y += copy.rows * copy.slots;
    }
    return copies;
  }

  void copy() {
    for (std::size_t k = 0;; ++k) {
      TileMask tiles = 0;
      for (int t = 0; t < chip::kTiles; ++t) {
        if ((tensor_.owners() & tiled::mask_of(t)) != 0 && copies_of(t).size() > k) tiles |= tiled::mask_of(t);
      }
      if (tiles == 0) return;
      for_each_class(
          tiles, [&](int tile) { return copies_of(tile)[k]; },
          [&](TileMask mask, const Copy& what) { writer_.add(copy_draft(mask, what)); });
    }
  }

  Draft copy_draft(TileMask tiles, const Copy& c) const {
    namespace t = isa::tensor_op;
    const std::int32_t channels = tensor_.channels, words = channels / kWord;
    const bool whole_words = channels % kWord == 0;
    const std::int64_t identity = std::int64_t{identity_line_} * chip::kWideAddressUnitsPerLine;
    Draft draft(Opcode::kMultiplyAdd);
    draft.tiles(tiles).sums_inside().cells(kWord).unscaled().wait(TileCounter::kWideToNarrow,
                                                                  {3, c.words, slot_words()});
    if (whole_words) {  // a slot is a row
      return draft.loops({1, words, c.columns, c.slots})
          .nest(
              t::kIn,
              LoopNest(c.from, {step(kWord, words), step(channels, c.columns), repeat(c.slots)}).swap(2, slots_.bytes))
          .nest(t::kOut, LoopNest(c.to, {step(kWord, words), step(tensor_.pitch, c.columns), step(c.row_bytes, c.slots),
                                         step(0, 1)}))
          .nest(t::kParam, LoopNest(identity, {repeat(1), repeat(words), repeat(c.columns), repeat(c.slots)}))
          .nest(t::kPsum, LoopNest(0, {repeat(1), repeat(words), repeat(c.columns), repeat(c.slots)}))
          .signal(t::kSignalAvdata, 2)
          .set(t::kScalingLevel, 4);
    }
    const std::int64_t all_rows = std::int64_t{c.rows} * c.slots;
    return draft.loops({channels, c.columns, c.rows, c.slots})
        .nest(t::kIn, LoopNest(c.from, {step(1, channels), step(channels, c.columns), step(rows_.bytes, c.rows),
                                        repeat(c.slots)})
                          .swap(3, slots_.bytes))
        .nest(t::kOut, LoopNest(c.to, {step(kWord, 1), step(tensor_.pitch, c.columns), step(c.row_bytes, c.rows),
                                       step(std::int64_t{c.row_bytes} * c.rows, c.slots)}))
        .nest(t::kParam, LoopNest(identity, {step(1, channels), repeat(c.columns), repeat(all_rows)}))
        .nest(t::kPsum, LoopNest(0, {repeat(channels), repeat(c.columns), repeat(all_rows)}))
        .signal(t::kSignalAvdata, 3)
        .set(t::kLanesOff, 7)
        .set(t::kPsumGroupLevel, 1)
        .set(t::kReduceDims, 1)
        .set(t::kScalingLevel, 3);
  }

  // ---- From the host to the slots ----

  LoopNest lines_nest(std::int64_t lines) const { return lines_by_turns(lines_, lines, slots_.lines); }

  void bring(int row, const InputSlots::Strip& strip) {
    namespace m = isa::movers;
    const TileMask tiles = tiles_of(row);
    const std::int64_t come = writer_.total(ScalarCounter::kAvdataInfeed);
    const std::int64_t all_words = strip.units * kUnitWords, lines = (all_words + kLineWords - 1) / kLineWords;
    const std::int64_t slots = (strip.words + slot_words() - 1) / slot_words();
    const std::int32_t first_word = buffer_ / kWord;
    Draft move(Opcode::kWideToNarrow);
    move.tiles(tiles)
        .nest(m::kToNarrowIn, lines_nest(lines))
        .nest(m::kToNarrowOut, LoopNest(first_word, {step(1, slot_words()), repeat(slots)})
                                   .swap(1, slot_words())
                                   .clip(1, strip.words - slot_words() * (slots - 1)))
        .set(m::kToNarrowLineLevel, 2)
        .wait(TileCounter::kRingReadA, {1, 1, 1})
        .wait(TileCounter::kAvdata, {1, -1, 1}, Gate::kWriting)
        .signal(m::kSignalWideToNarrow, 0);
    const std::int64_t skipped = all_words - strip.words;
    if (skipped > 0) {
      move.set(m::kSkip)
          .set(m::kSkipLevel, 2)
          .set(m::kSkipFirst, first_word)
          .set(m::kSkipWords, skipped)
          .set(m::kSkipLast, first_word + skipped - 1);
    }
    writer_.add(move);
    request_units(to_, input_, strip.first_unit, strip.units);
    const std::int64_t words_at_a_time = std::int64_t{slots_.lines} * kLineWords;
    writer_.add(Draft(Opcode::kRingReceiveA)
                    .tiles(tiles)
                    .nest(isa::ring::kReceiveOut, lines_nest(lines))
                    .wait(TileCounter::kWideToNarrow, {1, -words_at_a_time, words_at_a_time}, Gate::kWriting)
                    .signal(isa::ring::kSignalRingReadA, 1));
    send_units(writer_, come, strip.units, tiles);
  }

  const TiledTensor& tensor_;
  const tiled::Infeed& input_;
  const InputSlots slots_;
  const tiled::InputRows rows_;
  const std::int32_t buffer_, lines_, identity_line_;
};

}  // namespace

void infeed_by_slots(Emission& to, const tiled::Infeed& input) { SlotInfeed(to, input).write(); }

}  // namespace reef::emit

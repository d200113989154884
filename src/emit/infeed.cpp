// SPDX-License-Identifier: Apache-2.0
// The network's input, from the host's buffer into the tiles' narrow memories: row by row, where all tiles have equal
// shares (infeed_uneven.cpp, infeed_slots.cpp, infeed_strips.cpp and infeed_vector.cpp have the others).
//
// A row of tiles gets its quarter of the image as one stream, which the ring brings to all four of its tiles:
//
//   host -> (DMA) -> activation buffer -> pop -> ring A -> wide lines -> wide_to_narrow -> row slots -> copy -> tensor
//
// Rows pass through two slots in narrow memory and through two slots of wide lines, so that the next one arrives while
// one is copied. A tile's slot holds the row from its own first column on: wide_to_narrow skips, once, the words of the
// columns to its left; what follows in the slot (the rest of the row and the beginning of the next) is not used.
// The copy is a tensor operation with the identity as weights; it puts pixels at their place between the halos, and
// single bytes (images of 1 to 3 channels) into pixels of 4 bytes, the rest of which the zeros of the weights clear.
//
// Waits:
//   copy                WIDE_TO_NARROW   the words of its row are in the slot
//   wide_to_narrow      RING_READ_A      the lines have come; AVDATA: the row before last is copied, its slot is free
//   ring_receive        WIDE_TO_NARROW   the words of the lines before last are read, these lines are free
//   pop                 AVDATA_INFEED    the unit has come from the host
//   infeed              AVDATA_POP       the unit's place is free (the counter starts at the buffer's size less 4)
// The last row is copied after everything has arrived, by itself: its tile has fewer words of it than a whole row, so
// that the condition of the others would never hold.
//
// How it is known: this is what Google's newest compiler writes; tests compare instruction by instruction.
#include <algorithm>

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

class InfeedByRows : BlockWriter {
 public:
  InfeedByRows(Emission& to, const tiled::Infeed& input)
      : BlockWriter(to),
        tensor_(to.program.tensor(input.tensor)),
        input_(input),
        row_buffer_(to.program.address_of(input.row_buffer)),
        row_lines_(to.program.line_of(input.row_lines)),
        identity_line_(to.program.line_of(input.identity)),
        rows_(tiled::InputRows::of(tensor_)),
        tile_rows_(tensor_.rows.tile(0).own()),
        tile_columns_(tensor_.columns.tile(0).own()),
        whole_words_(tensor_.channels % kWord == 0) {}

  void write() {
    make_identity(writer_, rows_, constants_word(), identity_line_);
    const std::int64_t rows_before = writer_.total(TileCounter::kAvdata, 0);
    if (tile_rows_ > 1) copy(0, tile_rows_ - 1, writer_.total(TileCounter::kWideToNarrow, 0) + row_words());
    request_input(to_, input_);
    if (tile_rows_ > 2) writer_.tile_fence(0, counter_mask(TileCounter::kWideToNarrow));
    for (int column = 0; column < chip::kTileColumns; ++column) read_lines(column, rows_before);
    for (int row = 0; row < chip::kTileRows; ++row) spread(row);
    writer_.tile_fence(kAllUnits, 0);
    std::int64_t words = writer_.total(TileCounter::kWideToNarrow, 0);
    for (int t = 1; t < chip::kTiles; ++t) words = std::min(words, writer_.total(TileCounter::kWideToNarrow, t));
    copy(tile_rows_ - 1, 1, words);
  }

 private:
  std::int32_t row_words() const { return rows_.bytes / kWord; }
  std::int32_t slot_words() const { return rows_.slot_bytes / kWord; }
  std::int32_t first_word() const { return row_buffer_ / kWord; }
  std::int32_t constants_word() const { return first_word() + 2 * slot_words(); }
  std::int32_t column_words() const { return tile_columns_ * tensor_.channels / kWord; }
  std::int64_t strip_bytes() const { return std::int64_t{tile_rows_} * rows_.bytes; }

  // Copies `count` rows of every tile from the slots to the tensor, from its row `first` on.
  // Columns of tiles whose halos differ have rows of different lengths, each kind its own instruction.
  void copy(std::int32_t first, std::int32_t count, std::int64_t words_needed) {
    const auto place = [&](int tile) {
      const int row = chip::tile_row(tile), column = chip::tile_column(tile);
      return std::pair(tensor_.row_bytes(column), tensor_.first_own_byte(row, column));
    };
    for_each_class(tiled::kAllTiles, place, [&](TileMask tiles, const std::pair<std::int32_t, std::int32_t>& at) {
      copy_on(tiles, at.first, at.second + first * at.first, first, count, words_needed);
    });
  }

  // `out`: the byte of the first pixel.
  void copy_on(TileMask tiles, std::int32_t row_bytes, std::int32_t out, std::int32_t first, std::int32_t count,
               std::int64_t words_needed) {
    namespace t = isa::tensor_op;
    const std::int32_t slot = row_buffer_ + (first % 2) * rows_.slot_bytes;
    const auto all = static_cast<std::int64_t>(tensor_.tile_bytes());
    const std::int32_t channels = tensor_.channels, words = channels / kWord, columns = tile_columns_;
    const std::int32_t identity = identity_line_ * chip::kWideAddressUnitsPerLine;
    Draft draft(Opcode::kMultiplyAdd);
    draft.tiles(tiles).sums_inside().cells(kWord).unscaled().wait(TileCounter::kWideToNarrow,
                                                                  {3, words_needed, row_words()});
    if (whole_words_) {
      draft.loops({1, words, columns, count})
          .nest(t::kIn,
                LoopNest(slot, {step(kWord, words), step(channels, columns), repeat(count)}).swap(2, rows_.slot_bytes))
          .nest(t::kOut,
                LoopNest(out, {step(kWord, words), step(channels, columns), step(row_bytes, count), step(all, 1)}))
          .nest(t::kParam, LoopNest(identity, {repeat(words), repeat(1), repeat(columns), repeat(count)}))
          .nest(t::kPsum, LoopNest(0, {repeat(words), repeat(1), repeat(columns), repeat(count)}))
          .signal(t::kSignalAvdata, 2)
          .set(t::kScalingLevel, 4);
    } else {
      std::vector<Dim> pixels = {step(kWord, 1), step(kWord, columns), step(row_bytes, 1)};
      if (count > 1) pixels.push_back(step(row_bytes, count));
      pixels.push_back(step(all, 1));
      const Dim sums{channels == 1 ? 1 : 0, channels, false};
      draft.loops({channels, columns, 1, count})
          .nest(t::kIn,
                LoopNest(slot, {step(1, channels), step(channels, columns), step(rows_.bytes, 1), repeat(count)})
                    .swap(3, rows_.slot_bytes))
          .nest(t::kOut, LoopNest(out, pixels))
          .nest(t::kParam, LoopNest(identity, {step(1, channels), repeat(columns), repeat(count)}))
          .nest(t::kPsum, LoopNest(0, {sums, repeat(columns), repeat(count)}))
          .signal(t::kSignalAvdata, 3)
          .set(t::kLanesOff, 7)
          .set(t::kPsumGroupLevel, 1)
          .set(t::kReduceDims, 1)
          .set(t::kScalingLevel, 3);
    }
    writer_.add(draft);
  }

  // Lines of the strip, slot after slot. One line to a slot is written without an inner dimension.
  LoopNest lines() const {
    const std::int64_t all = (strip_bytes() + chip::kWideLineBytes - 1) / chip::kWideLineBytes;
    if (rows_.lines == 1) return LoopNest(row_lines_, {repeat(all)}).swap(0, 1);
    const std::int64_t slots = (all + rows_.lines - 1) / rows_.lines;
    return LoopNest(row_lines_, {step(1, rows_.lines), repeat(slots)})
        .swap(1, rows_.lines)
        .clip(1, all - rows_.lines * (slots - 1));
  }
  int lines_level() const { return rows_.lines == 1 ? 0 : 1; }

  void read_lines(int column, std::int64_t rows_before) {
    namespace m = isa::movers;
    const std::int32_t skipped = column * column_words();
    const int tile = column;
    Draft draft(Opcode::kWideToNarrow);
    draft.tiles(static_cast<TileMask>(0x1111u << column))
        .nest(m::kToNarrowIn, lines())
        .nest(m::kToNarrowOut, LoopNest(first_word(), {step(1, row_words()), repeat(tile_rows_)})
                                   .swap(1, slot_words())
                                   .clip(1, row_words() - skipped))
        .set(m::kToNarrowLineLevel, 2)
        .wait(TileCounter::kRingReadA, {lines_level(), writer_.total(TileCounter::kRingReadA, tile) + 1, 1})
        .wait(TileCounter::kAvdata, {1, rows_before - 1, 1}, Gate::kWriting)
        .signal(m::kSignalWideToNarrow, 0);
    if (skipped > 0) {
      draft.set(m::kSkip)
          .set(m::kSkipLevel, 2)
          .set(m::kSkipFirst, first_word())
          .set(m::kSkipWords, skipped)
          .set(m::kSkipLast, first_word() + skipped - 1);
    }
    writer_.add(draft);
  }

  void spread(int row) {
    const auto tiles = static_cast<TileMask>(0xfu << (chip::kTileColumns * row));
    const std::int64_t slot_words_on_ring = std::int64_t{rows_.lines} * kLineWords;
    writer_.add(
        Draft(Opcode::kRingReceiveA)
            .tiles(tiles)
            .nest(isa::ring::kReceiveOut, lines())
            .wait(TileCounter::kWideToNarrow, {lines_level(), -slot_words_on_ring, slot_words_on_ring}, Gate::kWriting)
            .signal(isa::ring::kSignalRingReadA, lines_level()));
    const std::int64_t units = strip_bytes() / chip::kActivationFifoUnitBytes;
    const std::int64_t before =
        writer_.total(ScalarCounter::kAvdataPop) - (chip::kActivationFifoUnits - kUnitsKeptFree);
    send_units(writer_, before, units, tiles);
  }

  const TiledTensor& tensor_;
  const tiled::Infeed& input_;
  const std::int32_t row_buffer_, row_lines_, identity_line_;
  const tiled::InputRows rows_;
  const std::int32_t tile_rows_, tile_columns_;
  const bool whole_words_;
};

}  // namespace

void emit_step(Emission& to, const tiled::Infeed& input) {
  // What came before has begun the chip's work; buffers of the scalar core begin anew (request_input), which must not
  // happen while anything is in them.
  const bool uneven = input.slots && tiled::UnevenInput::can_take(to.program.level, to.program.tensor(input.tensor));
  if ((uneven || !input.slots) && std::get_if<tiled::Infeed>(&to.program.steps.front().work) != &input) {
    to.writer.tile_fence(kAllUnits, kCountersOfTiles);
    to.writer.barrier();
  }
  if (uneven) {
    infeed_uneven(to, input);
  } else if (input.slots) {
    infeed_by_slots(to, input);
  } else if (input.vector) {
    infeed_vector(to, input);
  } else if (input.strips) {
    infeed_by_strips(to, input);
  } else {
    InfeedByRows(to, input).write();
  }
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  exchange_halo(to.writer, to.program.tensor(input.tensor), nullptr);
}

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// Images that the host keeps for a program: tile by tile to the scratch memory and back, each with a transfer of its
// own, because the rows of a tile lie together there and those of several do not (tiled::HostImage).
//
//   store   narrow memory -> narrow_to_wide -> two wide lines -> ring A -> outfeed -> host
//   load    host -> (DMA) -> activation buffer -> pop -> ring A -> wide lines -> wide_to_narrow -> narrow memory
//
// Waits of a store are those of a result (outfeed.cpp), of a load those of an input (infeed_slots.cpp). The block
// before must have ended: the memory was written by anything, and a load may read what a store has just written. The
// driver is told to end all transfers before those of a load.
//
// How it is known: Google's compiler keeps tensors on the host in the same way, whole tensors with one transfer
// (docs/hardware/google_large_networks.md#where-tensors-wait); that there is one for each tile is our own, checked on
// the virtual device only.
#include "emit/blocks.h"
#include "emit/infeed_parts.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/scalar.h"

namespace reef::emit {
namespace {

namespace q = isa::host_queues;
namespace m = isa::movers;

// What a tile has of the image, and where the host keeps it.
struct TileRows {
  std::int32_t first_word = 0, rows = 0, row_words = 0, buffer_row_words = 0;
  std::int32_t pixel_words = 0, columns = 0, pitch_words = 0;
  std::int64_t offset = 0, units = 0;

  std::int64_t words() const { return units * kUnitWords; }
  std::int64_t lines() const { return (words() + kLineWords - 1) / kLineWords; }
};

TileRows rows_of(const TiledTensor& tensor, const tiled::HostImage& image, int tile) {
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  const tiled::TileShare& share = tensor.rows.tile(row);
  TileRows result;
  result.first_word = tensor.first_own_byte(row, column) / kWord;
  result.rows = share.own();
  result.row_words = image.row_units(column) * kUnitWords;
  result.buffer_row_words = tensor.row_bytes(column) / kWord;
  result.pixel_words = image.pixel_words;
  result.columns = tensor.columns.tile(column).own();
  result.pitch_words = tensor.pitch / kWord;
  result.offset = image.row_offset(column, share.begin);
  result.units = std::int64_t{share.own()} * image.row_units(column);
  return result;
}

void queue(Emission& to, const TileRows& what, darwinn::Direction direction) {
  ProgramWriter& writer = to.writer;
  const std::int64_t bytes = what.units * chip::kActivationFifoUnitBytes;
  const bool is_in = direction == darwinn::Direction::kToDevice;
  if (what.offset == 0) {
    writer.copy_address({kAddressLow, kAddressHigh}, {kScratchLow, kScratchHigh}, kDescriptorScratch);
  } else {
    writer.add_offset({kAddressLow, kAddressHigh}, {kScratchLow, kScratchHigh}, kDescriptorScratch,
                      static_cast<std::uint32_t>(what.offset));
  }
  using Tag = isa::bundle::DescriptorTag;
  writer.queue_transfer({kAddressLow, kAddressHigh, kDescriptorScratch, static_cast<std::uint32_t>(bytes),
                         static_cast<int>(is_in ? Tag::kInput : Tag::kOutput)});
  to.hint_transfer(darwinn::BaseAddress::kScratch, "", what.offset, bytes, direction);
}

// Rows with their words next to each other, and one behind them where that makes whole units.
LoopNest row_nest(const TileRows& what) {
  return {what.first_word, {step(1, what.row_words), step(what.buffer_row_words, what.rows)}};
}

void fill_lines(ProgramWriter& writer, int tile, const TileRows& what, std::int32_t two_lines) {
  writer.add(Draft(Opcode::kNarrowToWide)
                 .tiles(tiled::mask_of(tile))
                 .nest(m::kToWideIn, row_nest(what))
                 .nest(m::kToWideOut, LoopNest(two_lines, {step(1, 1), repeat(what.lines())}).swap(1, 1))
                 .set(m::kToWideLineLevel, 2)
                 .wait(TileCounter::kRingWrite, {1, writer.total(TileCounter::kRingWrite, tile) - 1, 1}, Gate::kWriting)
                 .signal(m::kSignalNarrowToWide, 1));
}

}  // namespace

void emit_step(Emission& to, const tiled::HostStore& store) {
  namespace r = isa::ring;
  ProgramWriter& writer = to.writer;
  const TiledTensor& tensor = to.program.tensor(store.tensor);
  const std::int32_t two_lines = to.program.line_of(store.lines);
  writer.barrier();
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((tensor.owners() & tiled::mask_of(tile)) == 0) continue;
    const TileRows what = rows_of(tensor, store.image, tile);
    const std::int64_t filled = writer.total(TileCounter::kNarrowToWide, tile);
    fill_lines(writer, tile, what, two_lines);
    queue(to, what, darwinn::Direction::kToHost);
    writer.add(Draft(Opcode::kOutfeed)
                   .nest(q::kOutfeedOut, LoopNest(0, {Dim{what.units == 1 ? 1 : 0, what.units, false}}))
                   .signal(q::kSignalOutfeed, 1)
                   .set(q::kOutfeedLineWords, kLineWords)
                   .set(q::kOutfeedTarget));
    writer.add(Draft(Opcode::kRingSend)
                   .tiles(tiled::mask_of(tile))
                   .nest(r::kSendIn, LoopNest(two_lines, {step(1, 1), repeat(what.lines())}).swap(1, 1))
                   .wait(TileCounter::kRingProducerA, {2, writer.total(TileCounter::kRingProducerA, tile), 1})
                   .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1})
                   .signal(r::kSignalRingWrite, 1)
                   .signal(r::kSignalRingProducer, 2)
                   .set(r::kToScalar));
  }
}

namespace {

void bring(Emission& to, int tile, const TileRows& what, std::int32_t first_line) {
  ProgramWriter& writer = to.writer;
  const std::int64_t come = writer.total(ScalarCounter::kAvdataInfeed), lines = what.lines();
  const std::int64_t at_a_time = std::min<std::int64_t>(lines, tiled::HostLoad::kLines / 2);
  const std::int64_t words_at_a_time = at_a_time * kLineWords;
  const LoopNest buffer = buffer_blocks(come % chip::kActivationFifoUnits, what.units, kActivationBlock);
  writer.add(Draft(Opcode::kWideToNarrow)
                 .tiles(tiled::mask_of(tile))
                 .nest(m::kToNarrowIn, lines_by_turns(first_line, lines, at_a_time))
                 .nest(m::kToNarrowOut, row_nest(what))
                 .set(m::kToNarrowLineLevel, 2)
                 .wait(TileCounter::kRingReadA, {1, 1, 1})
                 .signal(m::kSignalWideToNarrow, 0));
  writer.add(Draft(Opcode::kInfeed)
                 .set(q::kInfeedBuffer)
                 .nest(q::kInfeedOut, buffer)
                 .wait(ScalarCounter::kAvdataPop, {0, come, 1})
                 .signal(q::kSignalInfeed, 0));
  queue(to, what, darwinn::Direction::kToDevice);
  writer.add(Draft(Opcode::kRingReceiveA)
                 .tiles(tiled::mask_of(tile))
                 .nest(isa::ring::kReceiveOut, lines_by_turns(first_line, lines, at_a_time))
                 .wait(TileCounter::kWideToNarrow, {1, -words_at_a_time, words_at_a_time}, Gate::kWriting)
                 .signal(isa::ring::kSignalRingReadA, 1));
  send_units(writer, come, what.units, tiled::mask_of(tile));
}

}  // namespace

void emit_step(Emission& to, const tiled::HostLoad& load) {
  ProgramWriter& writer = to.writer;
  const TiledTensor& tensor = to.program.tensor(load.tensor);
  writer.barrier();
  writer.tile_fence(kAllUnits, kCountersOfTiles);  // everything is counted from 0, in all tiles
  reset_scalar_counters(writer, {ScalarCounter::kAvdataPop}, chip::kActivationFifoUnits - kUnitsKeptFree);
  reset_scalar_counters(writer, {ScalarCounter::kAvdataInfeed}, 0);
  to.hint_fence();
  for (int tile = 0; tile < chip::kTiles; ++tile) {
    if ((tensor.owners() & tiled::mask_of(tile)) == 0) continue;
    bring(to, tile, rows_of(tensor, load.image, tile), to.program.line_of(load.lines));
  }
  writer.tile_fence(kAllUnits, kCountersOfTiles);
  exchange_halo(writer, tensor, nullptr);
}

}  // namespace reef::emit

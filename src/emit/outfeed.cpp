// SPDX-License-Identifier: Apache-2.0
// A result to the host: tile after tile.
//
//   narrow memory -> narrow_to_wide -> two wide lines -> ring A -> outfeed -> host
//
// All tiles fill their two lines at once and wait; then each sends when it is its turn. A line is 64 words. The host
// reads 8 bytes at a time: a tile with an odd number of words sends one more, and the package's layout leaves it out.
// Waits:
//   narrow_to_wide   RING_WRITE: the line before last has been sent
//   ring_send        RING_PRODUCER_A: all tiles before have finished; NARROW_TO_WIDE: the line is filled
//
// A result may go out in pieces of some rows each, one behind the other in the host's buffer.
//
// How it is known: as Google's newest compiler does it where all tiles have the same share, and for vectors; pieces
// with a transfer each are in its programs for large results, too (docs/hardware/google_large_networks.md#outputs).
// Uneven shares of images are our own.
#include <bit>

#include "emit/blocks.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/scalar.h"

namespace reef::emit {
namespace {

struct OutfeedShare {
  std::int32_t first_word = 0, rows = 0, columns = 0, row_words = 0;
  std::int64_t lines_sent = 0;  // by this tile, before
  friend bool operator==(const OutfeedShare&, const OutfeedShare&) = default;
};

std::int32_t words_of_tile(const TiledTensor& tensor, int tile) {
  const auto words = [](std::int32_t bytes) { return (bytes + kWord - 1) / kWord; };
  switch (tensor.spread) {
    case tiled::Spread::kGrid:
      return tensor.rows.tile(chip::tile_row(tile)).own() * tensor.columns.tile(chip::tile_column(tile)).own() *
             words(tensor.pitch);
    case tiled::Spread::kVector:
      return words(tensor.run_of(tile));
    case tiled::Spread::kCopies:  // one of them
      return std::countr_zero(tensor.tiles) == tile ? tensor.height * tensor.width * words(tensor.pitch) : 0;
  }
  return 0;
}

// The words of tiles that have equally many, into the two lines.
void fill_lines(ProgramWriter& writer, const TiledTensor& tensor, std::int32_t two_lines, TileMask tiles,
                const OutfeedShare& share) {
  namespace m = isa::movers;
  Draft draft(Opcode::kNarrowToWide);
  draft.tiles(tiles);
  if (tensor.spread == tiled::Spread::kGrid) {
    const std::int32_t pixel_words = tensor.pitch / kWord;
    const std::int32_t words = share.rows * share.columns * pixel_words;
    // A single line is written as a dimension of one step.
    const int level = words <= kLineWords ? 1 : 0;
    LoopNest lines(two_lines, {{level, (words + kLineWords - 1) / kLineWords, false}});
    draft
        .nest(m::kToWideIn, LoopNest(share.first_word, {step(1, pixel_words), step(pixel_words, share.columns),
                                                        step(share.row_words, share.rows)}))
        .nest(m::kToWideOut, lines.swap(level, 1))
        .set(m::kToWideLineLevel, 3)
        .wait(TileCounter::kRingWrite, {level, share.lines_sent - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, level);
  } else {
    const std::int32_t words = share.columns;
    const std::int32_t lines = (words + kLineWords - 1) / kLineWords;
    draft.nest(m::kToWideIn, LoopNest(share.first_word, {{1, words, words > 1}}))
        .nest(m::kToWideOut, LoopNest(two_lines, {{1, 1, false}, repeat(lines)}).swap(1, 1))
        .set(m::kToWideLineLevel, 1)
        .wait(TileCounter::kRingWrite, {1, share.lines_sent - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 1);
  }
  writer.add(draft);
}

}  // namespace

OutputStream output_stream(const TiledTensor& tensor) {
  OutputStream stream;
  for (std::size_t t = 0; t < chip::kTiles; ++t) {
    stream.offset[t] = stream.bytes;
    stream.words[t] = words_of_tile(tensor, static_cast<int>(t));
    stream.bytes += (stream.words[t] + kUnitWords - 1) / kUnitWords * chip::kActivationFifoUnitBytes;
  }
  return stream;
}

void emit_step(Emission& to, const tiled::Outfeed& output) {
  ProgramWriter& writer = to.writer;
  namespace q = isa::host_queues;
  namespace r = isa::ring;
  const TiledTensor& tensor = to.program.tensor(output.tensor);
  const std::int32_t two_lines = to.program.line_of(output.lines);
  const std::string layer_name = to.name_of(output);
  const OutputStream stream = output_stream(tensor);
  const auto lines_of = [&](int tile) { return (stream.words[at(tile)] + kLineWords - 1) / kLineWords; };
  std::int64_t& sent = to.bytes_sent[output.border];
  if (output.piece == 0) sent = 0;
  writer.barrier();
  load_layer_address(writer, darwinn::BaseAddress::kOutput, layer_name);
  if (sent == 0) {
    use_layer_address(writer);
  } else {
    writer.add_offset({kAddressLow, kAddressHigh}, layer_registers(writer), kDescriptorScratch,
                      static_cast<std::uint32_t>(sent));
  }
  TileMask tiles = 0;
  std::array<std::int64_t, chip::kTiles> filled{};  // lines, before
  for (int t = 0; t < chip::kTiles; ++t) {
    if (stream.words[at(t)] > 0) tiles |= tiled::mask_of(t);
    filled[at(t)] = writer.total(TileCounter::kNarrowToWide, t);
  }
  const auto share_of = [&](int tile) {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    if (tensor.spread != tiled::Spread::kGrid) {
      return OutfeedShare{tensor.address / kWord, 1, stream.words[at(tile)], 0,
                          writer.total(TileCounter::kRingWrite, tile)};
    }
    return OutfeedShare{tensor.first_own_byte(row, column) / kWord, tensor.rows.tile(row).own(),
                        tensor.columns.tile(column).own(), tensor.row_bytes(column) / kWord,
                        writer.total(TileCounter::kRingWrite, tile)};
  };
  for_each_class(tiles, share_of,
                 [&](TileMask mask, const OutfeedShare& share) { fill_lines(writer, tensor, two_lines, mask, share); });
  writer.queue_transfer({kAddressLow, kAddressHigh, kDescriptorScratch, static_cast<std::uint32_t>(stream.bytes),
                         static_cast<int>(isa::bundle::DescriptorTag::kOutput)});
  to.hint_transfer(darwinn::BaseAddress::kOutput, layer_name, sent, stream.bytes, darwinn::Direction::kToHost);
  sent += stream.bytes;
  for (int t = 0; t < chip::kTiles; ++t) {
    const std::int32_t words = stream.words[at(t)];
    if (words == 0) continue;
    const std::int32_t unit_count = (words + kUnitWords - 1) / kUnitWords;
    const Dim units{unit_count == 1 ? 1 : 0, unit_count, false};
    writer.add(Draft(Opcode::kOutfeed)
                   .nest(q::kOutfeedOut, LoopNest(0, {units}))
                   .signal(q::kSignalOutfeed, 1)
                   .set(q::kOutfeedLineWords, kLineWords)
                   .set(q::kOutfeedTarget));
    writer.add(Draft(Opcode::kRingSend)
                   .tiles(tiled::mask_of(t))
                   .nest(r::kSendIn, LoopNest(two_lines, {step(1, 1), repeat(lines_of(t))}).swap(1, 1))
                   .wait(TileCounter::kRingProducerA, {2, writer.total(TileCounter::kRingProducerA, t), 1})
                   .wait(TileCounter::kNarrowToWide, {1, filled[at(t)] + 1, 1})
                   .signal(r::kSignalRingWrite, 1)
                   .signal(r::kSignalRingProducer, 2)
                   .set(r::kToScalar));
  }
}

}  // namespace reef::emit

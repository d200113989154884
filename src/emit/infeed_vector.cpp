// SPDX-License-Identifier: Apache-2.0
// The network's input where it is a vector: tile t gets its run of channels.
//
//   host -> (DMA) -> activation buffer -> pop -> ring A -> wide lines -> wide_to_narrow -> tensor
//
// A row of tiles gets the runs of its four tiles in one stream; each tile skips those of the tiles to its left.
// Waits: wide_to_narrow for RING_READ_A, the line has come; pop and infeed as in infeed.cpp. The others of Google's
// (AVDATA, and WIDE_TO_NARROW at the receiver) are always met: nothing is used twice here.
//
// Where all tiles of a set need everything (kCopies), they all receive it, through two lines in turn; then the receiver
// waits for WIDE_TO_NARROW, the line before last is read.
//
// How it is known: Google's newest compiler, instruction by instruction, for up to 1024 channels (64 to a tile, one
// line to a row of tiles). More, and copies, are our own.
#include <bit>

#include "emit/blocks.h"
#include "emit/infeed_parts.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"

namespace reef::emit {
namespace {

namespace m = isa::movers;

using tiled::InputVector;

// What a tile takes of the stream of its row.
struct VectorShare {
  int column = 0;
  std::int32_t words = 0;
  friend bool operator==(const VectorShare&, const VectorShare&) = default;
};

class VectorInfeed : BlockWriter {
 public:
  VectorInfeed(Emission& to, const tiled::Infeed& input)
      : BlockWriter(to),
        tensor_(to.program.tensor(input.tensor)),
        input_(input),
        first_line_(to.program.line_of(input.row_lines)),
        read_before_(writer_.total(TileCounter::kWideToNarrow, 0)) {}

  void write() {
    writer_.tile_fence(unit_mask(isa::Unit::kNarrowToWide), 0);
    request_input(to_, input_);
    if (tensor_.spread == tiled::Spread::kCopies) {
      to_all();
      return;
    }
    const auto share_of = [&](int tile) {
      return VectorShare{chip::tile_column(tile), (tensor_.run_of(tile) + kWord - 1) / kWord};
    };
    for_each_class(tensor_.owners(), share_of,
                   [&](TileMask tiles, const VectorShare& share) { read_lines(tiles, share); });
    for (int row = 0; row < chip::kTileRows; ++row) {
      if (InputVector::of(tensor_, row).units > 0) receive(row);
    }
    writer_.tile_fence(kAllUnits, 0);
  }

 private:
  void to_all() {
    const std::int64_t units = (tensor_.channels + chip::kActivationFifoUnitBytes - 1) / chip::kActivationFifoUnitBytes;
    const std::int64_t words = tensor_.pixel_words(), line_count = (words + kLineWords - 1) / kLineWords;
    const LoopNest lines = LoopNest(first_line_, {repeat(line_count)}).swap(0, 1);
    const int tile = first_of(tensor_.tiles);
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tensor_.tiles)
                    .nest(m::kToNarrowIn, lines)
                    .nest(m::kToNarrowOut, LoopNest(tensor_.address / kWord, {step(1, words)}))
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kRingReadA, {0, writer_.total(TileCounter::kRingReadA, tile) + 1, 1})
                    .signal(m::kSignalWideToNarrow, 0));
    writer_.add(Draft(Opcode::kRingReceiveA)
                    .tiles(tensor_.tiles)
                    .nest(isa::ring::kReceiveOut, lines)
                    .wait(TileCounter::kWideToNarrow, {0, read_before_ - kLineWords, kLineWords}, Gate::kWriting)
                    .signal(isa::ring::kSignalRingReadA, 0));
    send_units(writer_, 0, units, tensor_.tiles);
  }

  static int first_of(TileMask tiles) { return std::countr_zero(tiles); }

  void read_lines(TileMask tiles, const VectorShare& share) {
    const std::int32_t to_left = share.column * (tensor_.run / kWord);
    const std::int32_t first_line = to_left / kLineWords, skipped = to_left % kLineWords;
    const std::int32_t lines = (skipped + share.words + kLineWords - 1) / kLineWords;
    const std::int32_t word = tensor_.address / kWord;
    const int tile = first_of(tiles);
    const std::int64_t come = writer_.total(TileCounter::kRingReadA, tile) + first_line;
    Draft draft(Opcode::kWideToNarrow);
    draft.tiles(tiles)
        .nest(m::kToNarrowIn, LoopNest(first_line_ + first_line, {{1, lines, lines > 1}}))
        .nest(m::kToNarrowOut, LoopNest(word, {step(1, share.words)}).swap(1, kLineWords))
        .set(m::kToNarrowLineLevel, skipped > 0 ? 2 : 1)
        .wait(TileCounter::kRingReadA, {lines > 1 ? 0 : 1, come + 1, 1})
        .wait(TileCounter::kAvdata, {1, writer_.total(TileCounter::kAvdata, tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalWideToNarrow, 0);
    if (skipped > 0) {
      draft.set(m::kSkip)
          .set(m::kSkipLevel, 2)
          .set(m::kSkipFirst, word)
          .set(m::kSkipWords, skipped)
          .set(m::kSkipLast, word + skipped - 1);
    }
    writer_.add(draft);
  }

  void receive(int row) {
    namespace r = isa::ring;
    const InputVector part = InputVector::of(tensor_, row);
    const auto tiles = static_cast<TileMask>((0xfu << (chip::kTileColumns * row)) & tensor_.owners());
    const std::int32_t rows = (tensor_.vector_tiles() + chip::kTileColumns - 1) / chip::kTileColumns;
    const std::int64_t lines =
        (part.units * chip::kActivationFifoUnitBytes + chip::kWideLineBytes - 1) / chip::kWideLineBytes;
    Draft draft(Opcode::kRingReceiveA);
    draft.tiles(tiles);
    if (lines == 1) {
      draft.nest(r::kReceiveOut, LoopNest(first_line_, {{1, 1, rows > 1}}).swap(1, rows))
          .wait(TileCounter::kWideToNarrow, {1, read_before_ - rows * kLineWords, rows * kLineWords}, Gate::kWriting)
          .signal(r::kSignalRingReadA, 1);
    } else {
      draft.nest(r::kReceiveOut, LoopNest(first_line_, {step(1, lines)})).signal(r::kSignalRingReadA, 0);
    }
    writer_.add(draft);
    send_units(writer_, part.first_unit, part.units, tiles);
  }

  const TiledTensor& tensor_;
  const tiled::Infeed& input_;
  const std::int32_t first_line_;
  const std::int64_t read_before_;  // words, by any tile; tile 0 always has some of a vector
};

}  // namespace

void infeed_vector(Emission& to, const tiled::Infeed& input) { VectorInfeed(to, input).write(); }

}  // namespace reef::emit

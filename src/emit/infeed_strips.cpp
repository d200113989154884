// SPDX-License-Identifier: Apache-2.0
// The network's input for images that do not divide into 4x4 equal tiles of whole words.
//
// Every tile gets all bytes of its tile row's rows (a strip) into narrow memory as they come, through two wide lines;
// when all is there, it copies its own columns to their places. That takes room for a whole strip and no overlap of
// transfer and copy, but works for any size: where a row begins within a word does not matter to the copy, which reads
// single bytes unless pixels are whole words. Pixels of other sizes are copied in two steps: whole words, and the rest.
//
//   host -> (DMA) -> activation buffer -> pop -> ring A -> two wide lines -> wide_to_narrow -> strip -> copy -> tensor
//
// Strips begin and end with whole units of 8 bytes; a unit that two tile rows need is popped for both.
// Waits: as in infeed.cpp, but for lines only; a fence stands between arrival and copy.
//
// How it is known: the movers' rules are those of infeed.cpp. The arrangement is our own, checked on the virtual device
// only; Google's compiler does something else.

#include "emit/blocks.h"
#include "emit/infeed_parts.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;

using tiled::InputStrip;

class StripInfeed : BlockWriter {
 public:
  StripInfeed(Emission& to, const tiled::Infeed& input)
      : BlockWriter(to),
        tensor_(to.program.tensor(input.tensor)),
        input_(input),
        row_buffer_(to.program.address_of(input.row_buffer)),
        row_lines_(to.program.line_of(input.row_lines)),
        identity_line_(to.program.line_of(input.identity)),
        rows_(tiled::InputRows::of(tensor_)) {}

  void write() {
    const auto strip_bytes = static_cast<std::int32_t>(InputStrip::max_bytes(tensor_));
    make_identity(writer_, rows_, (row_buffer_ + strip_bytes) / kWord, identity_line_);
    if (by_rows()) {
      begin_requests(to_, input_);
    } else {
      request_input(to_, input_);
    }
    for (int row = 0; row < chip::kTileRows; ++row) {
      if (tensor_.rows.tile(row).own() > 0) receive(row);
    }
    writer_.tile_fence(kAllUnits, 0);
    const std::int32_t whole = tensor_.channels / kWord * kWord, rest = tensor_.channels - whole;
    if (rest == 0) {
      copy_words();
    } else {
      if (whole > 0) copy_bytes(0, kWord, whole / kWord);
      copy_bytes(whole, rest, 1);
    }
  }

 private:
  // In work by slices rows of tiles need some rows of the image each, of which some are the same: each has a transfer
  // of its own.
  bool by_rows() const { return tensor_.rows.is_local; }

  void receive(int row) {
    namespace m = isa::movers;
    const InputStrip strip = InputStrip::of(tensor_, row);
    const std::int64_t come = by_rows() ? writer_.total(ScalarCounter::kAvdataInfeed) : strip.first_unit;
    const std::int64_t words = strip.units * kUnitWords;
    const std::int64_t line_count = (words + kLineWords - 1) / kLineWords;
    const auto tiles = static_cast<TileMask>(0xfu << (chip::kTileColumns * row));
    const int tile = chip::kTileColumns * row;
    const LoopNest lines = LoopNest(row_lines_, {repeat(line_count)}).swap(0, 1);
    const std::int64_t moved = writer_.total(TileCounter::kWideToNarrow, tile);
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tiles)
                    .nest(m::kToNarrowIn, lines)
                    .nest(m::kToNarrowOut, LoopNest(row_buffer_ / kWord, {step(1, words)}))
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kRingReadA, {0, writer_.total(TileCounter::kRingReadA, tile) + 1, 1})
                    .signal(m::kSignalWideToNarrow, 0));
    if (by_rows()) request_units(to_, input_, strip.first_unit, strip.units);
    writer_.add(Draft(Opcode::kRingReceiveA)
                    .tiles(tiles)
                    .nest(isa::ring::kReceiveOut, lines)
                    .wait(TileCounter::kWideToNarrow, {0, moved - kLineWords, kLineWords}, Gate::kWriting)
                    .signal(isa::ring::kSignalRingReadA, 0));
    send_units(writer_, come, strip.units, tiles);
  }

  // Where a tile's pixels are in its strip, and where they go.
  struct Share {
    std::int32_t from = 0, to = 0, rows = 0, columns = 0, row_bytes = 0;
    friend bool operator==(const Share&, const Share&) = default;
  };
  Share share_of(int tile) const {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const tiled::TileShare& columns = tensor_.columns.tile(column);
    return {row_buffer_ + InputStrip::of(tensor_, row).shift + columns.begin * tensor_.channels,
            tensor_.first_own_byte(row, column), tensor_.rows.tile(row).own(), columns.own(),
            tensor_.row_bytes(column)};
  }
  template <typename Emit>
  void for_each_share(const Emit& emit) {
    TileMask owners = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      const Share share = share_of(t);
      if (share.rows > 0 && share.columns > 0) owners |= tiled::mask_of(t);
    }
    for_each_class(
        owners, [&](int tile) { return share_of(tile); }, emit);
  }

  static Draft copy_draft(TileMask tiles) {
    Draft draft(Opcode::kMultiplyAdd);
    draft.tiles(tiles).sums_inside().cells(kWord).unscaled();
    return draft;
  }
  std::int64_t identity() const { return std::int64_t{identity_line_} * chip::kWideAddressUnitsPerLine; }

  // Four bytes at a step.
  void copy_words() {
    const std::int32_t words = tensor_.channels / kWord;
    for_each_share([&](TileMask tiles, const Share& s) {
      writer_.add(
          copy_draft(tiles)
              .loops({1, words, s.columns, s.rows})
              .nest(t::kIn, LoopNest(s.from, {step(kWord, words), step(tensor_.channels, s.columns),
                                              step(rows_.bytes, s.rows)}))
              .nest(t::kOut,
                    LoopNest(s.to, {step(kWord, words), step(tensor_.pitch, s.columns), step(s.row_bytes, s.rows)}))
              .nest(t::kParam, LoopNest(identity(), {repeat(1), repeat(words), repeat(s.columns), repeat(s.rows)}))
              .nest(t::kPsum, LoopNest(0, {repeat(1), repeat(words), repeat(s.columns), repeat(s.rows)}))
              .set(t::kScalingLevel, 4));
    });
  }

  // `bytes` bytes, from channel `first` on, one at a step, into a word of the pixel; then the next word.
  void copy_bytes(std::int32_t first, std::int32_t bytes, std::int32_t words) {
    for_each_share([&](TileMask tiles, const Share& s) {
      writer_.add(
          copy_draft(tiles)
              .loops({bytes, words, s.columns, s.rows})
              .nest(t::kIn, LoopNest(s.from + first, {step(1, bytes), step(kWord, words),
                                                      step(tensor_.channels, s.columns), step(rows_.bytes, s.rows)}))
              .nest(t::kOut, LoopNest(s.to + first,
                                      {step(kWord, words), step(tensor_.pitch, s.columns), step(s.row_bytes, s.rows)}))
              .nest(t::kParam, LoopNest(identity(), {step(1, bytes), repeat(words), repeat(s.columns), repeat(s.rows)}))
              .nest(t::kPsum, LoopNest(0, {repeat(bytes), repeat(words), repeat(s.columns), repeat(s.rows)}))
              .set(t::kLanesOff, 7)
              .set(t::kPsumGroupLevel, 1)
              .set(t::kReduceDims, 1)
              .set(t::kScalingLevel, 4));
    });
  }

  const TiledTensor& tensor_;
  const tiled::Infeed& input_;
  const std::int32_t row_buffer_, row_lines_, identity_line_;
  const tiled::InputRows rows_;
};

}  // namespace

void infeed_by_strips(Emission& to, const tiled::Infeed& input) { StripInfeed(to, input).write(); }

}  // namespace reef::emit

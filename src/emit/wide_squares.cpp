// SPDX-License-Identifier: Apache-2.0
// Squares of numbers of 16 bits.
//
//   narrow_to_wide   words (two numbers) to two lines in turn, a word to a line: parameters of cell 0
//   multiply_add     a number by itself as a parameter, to a word of scratch, of which one byte counts
//   multiply_add     packs: four of these bytes, by the identity line, to a word of the result
// Done in rounds of some rows of a tile's pixels, as many as scratch holds. Waits: lines are handed over by
// NARROW_TO_WIDE and PARAMETERS; fences part squaring from packing. The halo of the result is exchanged at the end.
//
// How it is known: SOFTMAX squares a root of 16 bits in this way (16-bit inputs and parameters, one product at a step),
// and packing is that of MUL (docs/hardware/google_programs.md#mul-of-two-activations,
// docs/hardware/arithmetic.md#squares-and-products-of-16-bits). That they are put together so is our own; no program of
// Google's with SQUARED_DIFFERENCE is known.
#include <algorithm>

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

using isa::Opcode;
namespace t = isa::tensor_op;
namespace m = isa::movers;

constexpr std::int64_t kWord = chip::kNarrowWordBytes;
constexpr std::int64_t kQuarters = chip::kWideAddressUnitsPerLine;
constexpr std::int64_t kNumber = 2;  // bytes

class SquareWriter {
 public:
  SquareWriter(Emission& to, const tiled::WideSquares& step)
      : writer_(to.writer),
        program_(to.program),
        step_(step),
        output_(to.program.tensor(step.output)),
        input_(to.program.address_of(step.input)),
        spread_(to.program.address_of(step.spread)),
        line_(to.program.line_of(step.lines)) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_identity(writer_, program_, step_.identity);
    std::int64_t rows = 0;
    for (int tile = 0; tile < chip::kTiles; ++tile) rows = std::max<std::int64_t>(rows, rows_of(tile));
    for (std::int64_t first = 0; first < rows; first += step_.rows_at_once) round(first);
    if (output_.spread == tiled::Spread::kGrid && output_.has_halo()) {
      writer_.tile_fence(kAllUnits, 0);
      exchange_halo(writer_, output_, nullptr);
    }
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  std::int64_t rows_of(int tile) const {
    return (output_.owners() & tiled::mask_of(tile)) == 0 ? 0 : own_region(output_, tile).rows;
  }
  // What a tile does in a round that begins with row `first` of its own.
  struct Part {
    Region region;
    std::int64_t first = 0, rows = 0;
    std::int64_t row_numbers() const { return std::int64_t{region.columns} * region.words * kWord; }
    std::int64_t pairs() const { return rows * row_numbers() / 2; }
  };
  Part part_of(int tile, std::int64_t first) const {
    return {own_region(output_, tile), first, std::min<std::int64_t>(rows_of(tile) - first, step_.rows_at_once)};
  }

  void round(std::int64_t first) {
    TileMask tiles = 0;
    for (int tile = 0; tile < chip::kTiles; ++tile) {
      if (rows_of(tile) > first) tiles |= tiled::mask_of(tile);
    }
    writer_.tile_fence(kAllUnits, 0);
    // Both wait for what the other has done before this round: they are drafted before either is added.
    std::vector<Draft> drafts;
    const auto keep = [&](Draft draft) { drafts.push_back(std::move(draft)); };
    for_each_equal_draft(
        tiles, [&](int tile) { return to_lines(tile, part_of(tile, first)); }, keep);
    for_each_equal_draft(
        tiles, [&](int tile) { return square(tile, part_of(tile, first)); }, keep);
    for (Draft& draft : drafts) writer_.add(std::move(draft));
    writer_.tile_fence(kAllUnits, 0);
    for_each_equal_draft(
        tiles, [&](int tile) { return pack(part_of(tile, first)); },
        [&](Draft draft) { writer_.add(std::move(draft)); });
  }

  std::int64_t numbers_at(const Part& part) const { return input_ + part.first * part.row_numbers() * kNumber; }

  Draft to_lines(int tile, const Part& part) const {
    Draft draft(Opcode::kNarrowToWide);
    draft.nest(m::kToWideIn, LoopNest(numbers_at(part) / kWord, {step(1, part.pairs())}))
        .nest(m::kToWideOut, LoopNest(line_, {repeat(part.pairs())}).swap(0, 1))
        .wait(TileCounter::kParameters, {0, writer_.total(TileCounter::kParameters, tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 0);
    return draft;
  }

  Draft draft_of_cells(const std::vector<std::int64_t>& loops) const {
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops(loops)
        .set(t::kAccumulateInside)
        .set(t::kPsumGroup)
        .set(t::kPsumGroupLevel, 1)
        .set(t::kCells, kWord)
        .set(t::kLastCells, kWord);
    return draft;
  }

  Draft square(int tile, const Part& part) const {
    const std::int64_t pairs = part.pairs();
    Draft draft = draft_of_cells({2, pairs});
    draft.nest(t::kIn, LoopNest(numbers_at(part), {step(kNumber, 2), step(kWord, pairs)}))
        .nest(t::kOut, LoopNest(spread_, {step(kWord, 1), step(kWord, 2), step(2 * kWord, pairs)}))
        .nest(t::kParam, LoopNest(line_ * kQuarters, {step(2, 2), repeat(pairs)}).swap(1, kQuarters))
        .nest(t::kPsum, LoopNest(0, {step(1, 1), repeat(2), repeat(pairs)}))
        .wait(TileCounter::kNarrowToWide, {1, writer_.total(TileCounter::kNarrowToWide, tile) + 1, 1})
        .signal(t::kSignalParameters, 1)
        .set(t::kIn16)
        .set(t::kParam16)
        .set(t::kInZero, step_.input_zero)
        .set(t::kParamZero, step_.input_zero)
        .set(t::kOutZero, output_.zero_point)
        .set(t::kScalingLevel, 2)
        .set_float(t::kScale, step_.multiplier)
        .set_float(t::kMax, step_.clamp.max)
        .set_float(t::kMin, step_.clamp.min);
    return draft;
  }

  Draft pack(const Part& part) const {
    const Region& out = part.region;
    const std::int64_t words = out.words, pixel = kWord * kWord * words, columns = out.columns, rows = part.rows;
    Draft draft = draft_of_cells({kWord, words, columns, rows});
    draft
        .nest(t::kIn,
              LoopNest(spread_, {step(kWord, kWord * words), step(pixel, columns), step(pixel * columns, rows)}))
        .nest(t::kOut, LoopNest(out.first_byte + part.first * out.row_bytes,
                                {step(kWord, words), step(out.pitch, columns), step(out.row_bytes, rows)}))
        .nest(t::kParam, LoopNest(std::int64_t{program_.line_of(step_.identity.line)} * kQuarters,
                                  {step(1, kWord), repeat(words), repeat(columns), repeat(rows)}))
        .nest(t::kPsum, LoopNest(0, {repeat(kWord), repeat(words), repeat(columns), repeat(rows)}))
        .set(t::kLanesOff, 7)
        .set(t::kScalingLevel, 2)
        .unscaled();
    return draft;
  }

  ProgramWriter& writer_;
  const tiled::TiledProgram& program_;
  const tiled::WideSquares& step_;
  const tiled::TiledTensor& output_;
  const std::int64_t input_, spread_, line_;
};

}  // namespace

void emit_step(Emission& to, const tiled::WideSquares& step) { SquareWriter(to, step).write(); }

}  // namespace reef::emit

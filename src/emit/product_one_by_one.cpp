// SPDX-License-Identifier: Apache-2.0
// The product of two tensors as Google's compiler has it: one product at a step, then four of them are packed.
//
//   narrow_to_wide   words of b to a few lines in turn, a word to a line: its bytes are four parameters of cell 0
//   multiply_add     a byte of a by a parameter, to a word of scratch, of which one byte counts
//   multiply_add     packs: four of these bytes, by the identity line, to a word of the result
// Waits: blocks of lines are handed over by NARROW_TO_WIDE and PARAMETERS, two blocks alternate. A fence of
// narrow_to_wide stands before packing, which needs the identity line.
//
// How it is known: word for word as in the newest compiler's programs
// (docs/hardware/google_programs.md#mul-of-two-activations), including fences that seem to have no purpose. Single
// words or blocks of four words of channels only: no other number is known.
#include "emit/constant_lines.h"
#include "emit/product_parts.h"
#include "emit/regions.h"
#include "isa/fence.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;

class OneByOne : BlockWriter {
 public:
  OneByOne(Emission& to, const tiled::Product& product)
      : BlockWriter(to),
        product_(product),
        output_(to.program.tensor(product.output)),
        first_line_(to.program.line_of(product.matrices)) {}

  void write() {
    const TileMask tiles = output_.owners();
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    add_each(writer_, tiles, [&](int tile) { return multiply(tile); });
    add_each(writer_, tiles, [&](int tile) { return to_lines(tile); });
    const bool makes_identity = product_.identity.words != tiled::kNowhere;
    make_identity(writer_, program_, product_.identity);
    writer_.tile_fence(unit_mask(isa::Unit::kNarrowToWide), 0);
    add_each(writer_, tiles, [&](int tile) { return pack(tile); });
    forget_lines(makes_identity ? 1 : 0);
    writer_.tile_fence(kAllUnits, counter_mask(TileCounter::kParameters));
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    if (output_.spread == tiled::Spread::kGrid) exchange_halo(writer_, output_, nullptr);
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  void forget_lines(std::int32_t reset_to) {
    namespace f = isa::tile_fence;
    writer_.add(Draft(Opcode::kTileFence)
                    .set(f::kTiles, tiled::kAllTiles)
                    .set(f::kReset, counter_mask(TileCounter::kNarrowToWide))
                    .set(f::kResetTo, reset_to)
                    .set(f::kDrain, kAllUnits));
  }

  // Words that are handed over at a time: lines of a block.
  static std::int64_t block_of(const Region& region) { return region.words == 1 ? 1 : kWord; }

  Draft draft_of_cells() const {
    Draft draft(Opcode::kMultiplyAdd);
    draft.sums_inside().set(t::kLanesOff, 7).set(t::kPsumGroupLevel, 1).cells(kWord);
    return draft;
  }

  Draft multiply(int tile) const {
    const Region in = region_of(program_.tensor(product_.a), output_, tile);
    const std::int64_t block = block_of(in) * kWord, bytes = std::int64_t{in.words} * kWord;
    const std::int64_t blocks = bytes / block, columns = in.columns, rows = in.rows;
    Draft draft = draft_of_cells();
    draft.loops({block, blocks, columns, rows})
        .nest(t::kIn, LoopNest(in.first_byte, {step(1, bytes), step(in.pitch, columns), step(in.row_bytes, rows),
                                               step(in.buffer_bytes, 1)}))
        .nest(t::kOut, LoopNest(program_.address_of(product_.spread),
                                {step(kWord, 1), step(kWord, bytes), step(kWord * bytes, columns),
                                 step(kWord * bytes * columns, rows), step(kWord * bytes * columns * rows, 1)}))
        .nest(t::kParam, LoopNest(std::int64_t{first_line_} * chip::kWideAddressUnitsPerLine,
                                  {step(1, block), repeat(blocks), repeat(columns), repeat(rows)})
                             .swap(1, block))
        .nest(t::kPsum, LoopNest(0, {step(1, 1), repeat(bytes), repeat(columns), repeat(rows)}))
        .wait(TileCounter::kNarrowToWide, {1, 1, 1})
        .signal(t::kSignalParameters, 1)
        .set(t::kParamZero, product_.b_zero)
        .set(t::kInZero, product_.a_zero)
        .set(t::kOutZero, product_.output_zero)
        .set(t::kScalingLevel, 4)
        .set_float(t::kScale, product_.multiplier)
        .set_float(t::kMax, product_.clamp.max)
        .set_float(t::kMin, product_.clamp.min);
    return draft;
  }

  Draft to_lines(int tile) const {
    namespace m = isa::movers;
    const Region in = region_of(program_.tensor(product_.b), output_, tile);
    const std::int64_t block = block_of(in);
    std::vector<Dim> words, lines;
    if (in.words > 1) words.push_back(step(1, in.words));
    words.push_back(step(in.pitch / kWord, in.columns));
    words.push_back(step(in.row_bytes / kWord, in.rows));
    if (block > 1) {
      lines = {step(1, block), repeat(in.words / block), repeat(in.pixels())};
    } else {
      lines = {repeat(in.pixels())};
    }
    const int level = block > 1 ? 1 : 0;
    Draft draft(Opcode::kNarrowToWide);
    draft.nest(m::kToWideIn, LoopNest(in.first_byte / kWord, words))
        .nest(m::kToWideOut, LoopNest(first_line_, lines).swap(level, block))
        .wait(TileCounter::kParameters, {level, -1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, level);
    return draft;
  }

  Draft pack(int tile) const {
    const Region out = own_region(output_, tile);
    const std::int64_t bytes = std::int64_t{out.words} * kWord, words = out.words;
    const std::int64_t columns = out.columns, rows = out.rows;
    Draft draft = draft_of_cells();
    draft.loops({kWord, words, columns, rows})
        .nest(t::kIn, LoopNest(program_.address_of(product_.spread),
                               {step(kWord, bytes), step(kWord * bytes, columns), step(kWord * bytes * columns, rows),
                                step(kWord * bytes * columns * rows, 1)}))
        .nest(t::kOut, LoopNest(out.first_byte, {step(kWord, words), step(out.pitch, columns),
                                                 step(out.row_bytes, rows), step(out.buffer_bytes, 1)}))
        .nest(t::kParam,
              LoopNest(std::int64_t{program_.line_of(product_.identity.line)} * chip::kWideAddressUnitsPerLine,
                       {step(1, kWord), repeat(words), repeat(columns), repeat(rows)})
                  .swap(1, 0))
        .nest(t::kPsum, LoopNest(0, {repeat(kWord), repeat(words), repeat(columns), repeat(rows)}))
        .set(t::kScalingLevel, 2)
        .unscaled();
    return draft;
  }

  const tiled::Product& product_;
  const tiled::TiledTensor& output_;
  const std::int32_t first_line_;
};

}  // namespace

void multiply_one_by_one(Emission& to, const tiled::Product& product) { OneByOne(to, product).write(); }

}  // namespace reef::emit

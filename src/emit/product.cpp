// SPDX-License-Identifier: Apache-2.0
// The product of two tensors.
//
// The tensor unit multiplies inputs by parameters, and all cells see the same inputs: for the product of two tensors
// one of them must become parameters, of which a cell may only have its own channel. So each word of b, four channels,
// becomes a matrix with the channels on the diagonal (cell k: byte k) and the zero point everywhere else:
//
//   multiply_add     word of b, by 16 cells, to four words of narrow memory
//   narrow_to_wide   four words to a line, one after the other
//   multiply_add     word of a, by the line: four products
// Waits: a fence before narrow_to_wide reads; blocks of lines are handed over by NARROW_TO_WIDE (they are there) and
// PARAMETERS (they are used up, two blocks alternate). The halo of the result is exchanged when all is done.
//
// How it is known: our own. Google's compiler makes one product at a step and packs four of them in a second pass
// (docs/hardware/google_programs.md#mul-of-two-activations), which takes eight steps where this takes two; the numbers
// are the same. Each instruction is used here in a way that Google's programs have, too.
#include <algorithm>

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/product_parts.h"
#include "emit/regions.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;

constexpr std::array<std::uint32_t, tiled::kSpreaderWords> spreader_words() {
  std::array<std::uint32_t, tiled::kSpreaderWords> words{};
  for (std::size_t k = 0; k < kWord; ++k) words[(kWord + 1) * k] = std::uint32_t{1} << (8 * k);
  return words;
}

std::int64_t largest_divisor(std::int64_t of, std::int64_t most) {
  std::int64_t divisor = std::min(of, most);
  while (of % divisor != 0) --divisor;
  return divisor;
}

class ProductWriter : BlockWriter {
 public:
  ProductWriter(Emission& to, const tiled::Product& product)
      : BlockWriter(to),
        product_(product),
        a_(to.program.tensor(product.a)),
        b_(to.program.tensor(product.b)),
        output_(to.program.tensor(product.output)) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_lines(writer_, spreader_words(), tiled::kSpreaderWords, program_.address_of(product_.spreader_words),
               program_.line_of(product_.spreader));
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    std::int32_t words = 0;
    for (int t = 0; t < chip::kTiles; ++t) words = std::max(words, own_region(output_, t).words);
    for (std::int32_t first = 0; first < words; first += product_.words_at_once) {
      if (first > 0) writer_.tile_fence(kAllUnits, 0);
      TileMask tiles = 0;
      for (int t = 0; t < chip::kTiles; ++t) {
        if ((output_.owners() & tiled::mask_of(t)) != 0 && own_region(output_, t).words > first) {
          tiles |= tiled::mask_of(t);
        }
      }
      add_each(writer_, tiles, [&](int tile) { return spread(tile, first); });
      writer_.tile_fence(kAllUnits, 0);
      // What waits for totals must not see those that the other makes: both are drafted before either is added.
      std::vector<Draft> drafts;
      add_each(drafts, tiles, [&](int tile) { return to_lines(tile, first); });
      add_each(drafts, tiles, [&](int tile) { return multiply(tile, first); });
      for (Draft& draft : drafts) writer_.add(std::move(draft));
    }
    if (output_.spread == tiled::Spread::kGrid && output_.has_halo()) {
      writer_.tile_fence(kAllUnits, 0);
      exchange_halo(writer_, output_, nullptr);
    }
  }

 private:
  std::int32_t words_of(int tile, std::int32_t first) const {
    return std::min(own_region(output_, tile).words - first, product_.words_at_once);
  }
  std::int64_t steps_of(int tile, std::int32_t first) const {
    return own_region(output_, tile).pixels() * words_of(tile, first);
  }
  static std::int64_t block_of(std::int64_t steps) { return largest_divisor(steps, tiled::kMostProductBlock); }

  static LoopNest walk(const Region& region, std::int32_t first, std::int32_t words) {
    std::vector<Dim> dims = {step(kWord, 1), step(region.pitch, region.columns)};
    if (region.rows > 1) dims.push_back(step(region.row_bytes, region.rows));
    dims.push_back(step(kWord, words));
    return {std::int64_t{region.first_byte} + first * kWord, dims};
  }

  Draft draft_with_cells(std::int32_t cells) const {
    Draft draft(Opcode::kMultiplyAdd);
    draft.sums_inside().set(t::kScalingLevel, 1).cells(cells);
    return draft;
  }

  Draft spread(int tile, std::int32_t first) const {
    const std::int32_t words = words_of(tile, first);
    const std::int64_t steps = steps_of(tile, first);
    Draft draft = draft_with_cells(tiled::kSpreaderWords);
    draft.loops({steps})
        .nest(t::kIn, walk(region_of(b_, output_, tile), first, words))
        .nest(t::kOut, LoopNest(program_.address_of(product_.spread), {step(kWord, tiled::kSpreadWords * steps)}))
        .nest(t::kParam,
              LoopNest(program_.line_of(product_.spreader) * chip::kWideAddressUnitsPerLine, {repeat(steps)}))
        .nest(t::kPsum, LoopNest(0, {repeat(steps)}))
        .set(t::kInZero, product_.b_zero)
        .set(t::kOutZero, product_.b_zero)
        .unscaled();
    return draft;
  }

  Draft to_lines(int tile, std::int32_t first) const {
    namespace m = isa::movers;
    const std::int64_t steps = steps_of(tile, first), block = block_of(steps);
    Draft draft(Opcode::kNarrowToWide);
    draft
        .nest(m::kToWideIn, LoopNest(program_.address_of(product_.spread) / kWord,
                                     {step(1, tiled::kSpreadWords), step(tiled::kSpreadWords, steps)}))
        .nest(m::kToWideOut,
              LoopNest(program_.line_of(product_.matrices), {step(1, block), repeat(steps / block)}).swap(1, block))
        .set(m::kToWideLineLevel, 1)
        .wait(TileCounter::kParameters, {1, writer_.total(TileCounter::kParameters, tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 1);
    return draft;
  }

  Draft multiply(int tile, std::int32_t first) const {
    const std::int32_t words = words_of(tile, first);
    const std::int64_t steps = steps_of(tile, first), block = block_of(steps), blocks = steps / block;
    const std::int64_t line = chip::kWideAddressUnitsPerLine;
    Draft draft = draft_with_cells(kWord);
    draft.loops({block, blocks})
        .nest(t::kIn, walk(region_of(a_, output_, tile), first, words))
        .nest(t::kOut, walk(own_region(output_, tile), first, words))
        .nest(t::kParam, LoopNest(program_.line_of(product_.matrices) * line, {step(line, block), repeat(blocks)})
                             .swap(1, line * block))
        .nest(t::kPsum, LoopNest(0, {repeat(block), repeat(blocks)}))
        .wait(TileCounter::kNarrowToWide, {1, writer_.total(TileCounter::kNarrowToWide, tile) + 1, 1})
        .signal(t::kSignalParameters, 1)
        .set(t::kInZero, product_.a_zero)
        .set(t::kParamZero, product_.b_zero)
        .set(t::kOutZero, product_.output_zero)
        .set_float(t::kScale, product_.multiplier)
        .set_float(t::kMax, product_.clamp.max)
        .set_float(t::kMin, product_.clamp.min);
    return draft;
  }

  const tiled::Product& product_;
  const TiledTensor& a_;
  const TiledTensor& b_;
  const TiledTensor& output_;
};

}  // namespace

void emit_step(Emission& to, const tiled::Product& product) {
  if (product.one_by_one) {
    multiply_one_by_one(to, product);
  } else {
    ProductWriter(to, product).write();
  }
}

}  // namespace reef::emit

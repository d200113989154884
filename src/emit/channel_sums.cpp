// SPDX-License-Identifier: Apache-2.0
// The sum of each pixel's channels: multiply_add with a line of ones, all words of a pixel into one result. Four cells
// make the same sum, so that every byte of the result's word holds it, which is what PixelNumbers needs.
//
// Waits: the block is fenced off, so that counters are 0 and everything that is read is there; multiply_add waits for
// NARROW_TO_WIDE, the line of ones is there. The halo of the result is exchanged when all is done.
//
// How it is known: our own. It is a convolution of one pixel with weights of 1 whose line is made in the tile, as the
// identity line is, instead of being kept among the parameters and sent over the ring.
#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

Draft sums_of(const Emission& to, const tiled::ChannelSums& sums, int tile) {
  namespace t = isa::tensor_op;
  const tiled::TiledTensor& output = to.program.tensor(sums.output);
  const Region out = own_region(output, tile), in = region_of(to.program.tensor(sums.input), output, tile);
  const std::vector<Dim> still = {repeat(in.words), repeat(in.columns), repeat(in.rows)};
  Draft draft(Opcode::kMultiplyAdd);
  draft.loops({in.words, in.columns, in.rows})
      .nest(t::kIn,
            LoopNest(in.first_byte, {step(kWord, in.words), step(in.pitch, in.columns), step(in.row_bytes, in.rows)}))
      .nest(t::kOut,
            LoopNest(out.first_byte, {step(kWord, 1), step(out.pitch, out.columns), step(out.row_bytes, out.rows)}))
      .nest(t::kParam, LoopNest(std::int64_t{to.program.line_of(sums.line)} * chip::kWideAddressUnitsPerLine, still))
      .nest(t::kPsum, LoopNest(0, still))
      .wait(TileCounter::kNarrowToWide, {3, to.writer.total(TileCounter::kNarrowToWide, tile), 1})
      .sums_inside()
      .set(t::kPsumGroupLevel, 1)
      .set(t::kReduceDims, 1)
      .set(t::kScalingLevel, 3)
      .cells(kWord)
      .set(t::kInZero, sums.input_zero)
      .set(t::kOutZero, sums.output_zero)
      .set_float(t::kScale, sums.multiplier)
      .set_float(t::kMax, sums.clamp.max)
      .set_float(t::kMin, sums.clamp.min);
  return draft;
}

}  // namespace

void emit_step(Emission& to, const tiled::ChannelSums& sums) {
  constexpr std::array<std::uint32_t, tiled::kChannelSumWords> kOnes = {0x01010101u, 0x01010101u, 0x01010101u,
                                                                        0x01010101u};
  const tiled::TiledTensor& output = to.program.tensor(sums.output);
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  make_lines(to.writer, kOnes, tiled::kChannelSumWords, to.program.address_of(sums.words),
             to.program.line_of(sums.line));
  add_each(to.writer, output.owners(), [&](int tile) { return sums_of(to, sums, tile); });
  if (output.has_halo()) {
    to.writer.tile_fence(kAllUnits, 0);
    exchange_halo(to.writer, output, nullptr);
  }
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
}

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// Every byte of a tensor by itself: multiply_add with the identity line as parameters, so that each of four cells has
// the byte of one channel; scale, clamp and activation table do the rest.
//
// Waits: the block is fenced off, so that counters are 0 and everything that is read is there. multiply_add waits for
// NARROW_TO_WIDE if the identity line has just been made. The activation table belongs to the tensor unit, which must
// be idle when it is loaded. The halo of the result is exchanged word by word of channels, as they are finished.
//
// How it is known: as Google's newest compiler writes QUANTIZE, LOGISTIC and TANH
// (docs/hardware/google_programs.md#element-wise-operations).
#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/activation.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

class ElementwiseWriter : BlockWriter {
 public:
  ElementwiseWriter(Emission& to, const tiled::Elementwise& op)
      : BlockWriter(to), op_(op), input_(to.program.tensor(op.input)), output_(to.program.tensor(op.output)) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_parameters();
    if (op_.function) load_table(writer_, op_.function->table, output_.owners());
    if (op_.constant_lines() > 0) {
      add_each(writer_, output_.owners(), [&](int tile) { return load_constants(tile); });
    }
    add_each(writer_, output_.owners(), [&](int tile) { return work_of(tile); });
    if (output_.spread == tiled::Spread::kGrid) {
      OwnPixels own;
      own.first.fill(1);
      own.block_words = 1;
      exchange_halo(writer_, output_, &own);
    }
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  void make_parameters() {
    if (!op_.repeats_channel) {
      make_identity(writer_, program_, op_.identity);
      return;
    }
    constexpr std::array<std::uint32_t, tiled::kIdentityLineWords> kFirstBytes = {1, 1, 1, 1};
    make_lines(writer_, kFirstBytes, tiled::kIdentityLineWords, program_.address_of(op_.repeater_words),
               program_.line_of(op_.repeater));
  }
  std::int64_t parameters() const {
    return std::int64_t{program_.line_of(op_.repeats_channel ? op_.repeater : op_.identity.line)} *
           chip::kWideAddressUnitsPerLine;
  }

  std::int32_t constants_line(int tile) const {
    for (const tiled::ParameterPiece& piece : program_.chunk(op_.constants).at) {
      if (piece.tile == tile) return piece.line;
    }
    return 0;
  }
  // Multipliers and biases of a word of channels after the other, into the halves of scaling memory in turn; one is
  // free when the words before have been computed.
  Draft load_constants(int tile) const {
    namespace m = isa::movers;
    const std::int32_t words = own_region(output_, tile).words;
    constexpr std::int32_t kSteps = kWord / 2;  // of 8 bytes
    Draft draft(Opcode::kWideToNarrow);
    draft.nest(m::kToNarrowIn, LoopNest(constants_line(tile), {step(1, std::int64_t{op_.constant_lines()} * words)}))
        .nest(m::kToNarrowOut,
              LoopNest(op_.has_multipliers ? chip::kScalingScalesWord : chip::kScalingBiasesWord,
                       {step(1, kSteps), step(chip::kScalingBiasesWord, op_.constant_lines()), repeat(words)})
                  .swap(2, kScalingHalf))
        .set(m::kToScaling)
        .set(m::kToNarrowLineLevel, 1)
        .wait(TileCounter::kAvdata, {2, writer_.total(TileCounter::kAvdata, tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalWideToNarrow, 2);
    return draft;
  }

  // The input's pixels in the order of the output's.
  LoopNest walk_input(int tile) const {
    const Region in = region_of(input_, output_, tile), out = own_region(output_, tile);
    const bool one_pixel = in.pixels() == 1 && out.pixels() > 1;
    if (!one_pixel && in.words == out.words) return walk(in);
    std::vector<Dim> dims = {step(kWord, 1)};
    if (one_pixel) {
      dims.push_back(repeat(out.pixels()));
    } else {
      dims.push_back(step(in.pitch, in.columns));
      if (in.rows > 1) dims.push_back(step(in.row_bytes, in.rows));
    }
    dims.push_back(op_.repeats_channel ? repeat(out.words) : step(kWord, out.words));
    return {in.first_byte, dims};
  }

  // Pixel after pixel of a word of channels, then the next word.
  static LoopNest walk(const Region& region) {
    std::vector<Dim> dims = {step(kWord, 1)};
    if (region.rows > 1 && region.rows_touch()) {
      dims.push_back(step(region.pitch, region.pixels()));
    } else {
      dims.push_back(step(region.pitch, region.columns));
      if (region.rows > 1) dims.push_back(step(region.row_bytes, region.rows));
    }
    dims.push_back(step(kWord, region.words));
    return {region.first_byte, dims};
  }

  Draft work_of(int tile) const {
    namespace t = isa::tensor_op;
    const Region out = own_region(output_, tile);
    std::vector<std::int64_t> loops;
    // With constants of its own, a single pixel is a pass of one step.
    if (out.pixels() > 1 || op_.constant_lines() > 0) loops = few_counts({out.columns, out.rows}, kMostParameterSteps);
    const int pixel_level = static_cast<int>(loops.size());
    loops.push_back(out.words);
    std::vector<Dim> still;
    for (const std::int64_t count : loops) still.push_back(repeat(count));
    const LoopNest written = walk(out);
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops(loops)
        .nest(t::kIn, walk_input(tile))
        .nest(t::kOut, written)
        .nest(t::kParam, LoopNest(parameters(), still))
        .nest(t::kPsum, LoopNest(0, still))
        .wait(TileCounter::kNarrowToWide, {pixel_level + 1, writer_.total(TileCounter::kNarrowToWide, tile), 1})
        .signal(t::kSignalAvdata, static_cast<int>(written.dims().size()) - 1)
        .signal(t::kSignalParameters, pixel_level)
        .sums_inside()
        .set(t::kInZero, op_.input_zero)
        .set(t::kScalingLevel, pixel_level)
        .cells(kWord)
        .set_float(t::kScale, op_.multiplier)
        .set(t::kConstant, op_.bias)
        .set(t::kScalePerCell, op_.has_multipliers)
        .set(t::kBias, op_.has_biases)
        .set(t::kOutZero, op_.output_zero);
    if (op_.constant_lines() > 0) {
      draft.wait(TileCounter::kWideToScaling,
                 {pixel_level, writer_.total(TileCounter::kWideToScaling, tile) - out.words + 1, 1});
    }
    if (!op_.function) {
      draft.set_float(t::kMax, op_.clamp.max).set_float(t::kMin, op_.clamp.min);
    } else {
      draft.set_float(t::kMax, op_.function->max)
          .set_float(t::kMin, op_.function->min)
          .set(t::kActivation)
          .set(t::kReciprocalRoot, op_.function->is_reciprocal_root ? 1 : 0)
          .set(t::kOddSymmetry, op_.function->is_odd ? 3 : 0);
    }
    return draft;
  }

  const tiled::Elementwise& op_;
  const tiled::TiledTensor& input_;
  const tiled::TiledTensor& output_;
};

}  // namespace

void load_table(ProgramWriter& writer, const numeric::ChipTable& table, TileMask tiles) {
  namespace a = isa::activation;
  writer.tile_fence(unit_mask(isa::Unit::kTensor), counter_mask(TileCounter::kAvdata) |
                                                       counter_mask(TileCounter::kParameters) |
                                                       counter_mask(TileCounter::kPartialSums));
  Draft draft(Opcode::kLoadActivation);
  draft.tiles(tiles);
  for (int s = 0; s < a::kSegments; ++s) {
    for (int p = 0; p < a::kCoefficients; ++p) {
      draft.set_float(a::coefficient(s, p), table.segments[at(s)][at(p)]);
    }
  }
  for (int k = 0; k < a::kBreakpoints; ++k) {
    draft.set_float(a::breakpoint(k), table.breaks[at(k)]);
  }
  writer.add(draft);
}

void emit_step(Emission& to, const tiled::Elementwise& op) { ElementwiseWriter(to, op).write(); }

}  // namespace reef::emit

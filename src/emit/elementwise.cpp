// SPDX-License-Identifier: Apache-2.0
// Every byte of a tensor by itself: multiply_add with the identity line as parameters, so that each of four cells has
// the byte of one channel; scale, clamp and activation table do the rest.
//
// Waits: the block is fenced off, so that counters are 0 and everything that is read is there. multiply_add waits for
// NARROW_TO_WIDE if the identity line has just been made. The activation table belongs to the tensor unit, which must
// be idle when it is loaded. The halo of the result is exchanged word by word of channels, as they are finished.
//
// How it is known: as Google's newest compiler writes QUANTIZE, LOGISTIC and TANH (codegen_ops.md 3).
#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/activation.h"
#include "isa/tensor_op.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

using isa::Opcode;
using tiled::TableFunction;
constexpr std::int32_t kWord = chip::kNarrowWordBytes;

numeric::ChipFunction function_of(const tiled::Elementwise& op) {
  return op.function == TableFunction::kTanh ? numeric::chip_tanh(op.function_scale)
                                             : numeric::chip_logistic(op.function_scale);
}

class ElementwiseWriter {
 public:
  ElementwiseWriter(Emission& to, const tiled::Elementwise& op)
      : writer_(to.writer),
        program_(to.program),
        op_(op),
        input_(to.program.tensor(op.input)),
        output_(to.program.tensor(op.output)) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_identity(writer_, program_, op_.identity);
    if (op_.function != TableFunction::kNone) load_table(writer_, function_of(op_).table, output_.owners());
    for_each_equal_draft(
        output_.owners(), [&](int tile) { return work_of(tile); }, [&](Draft draft) { writer_.add(std::move(draft)); });
    if (output_.spread == tiled::Spread::kGrid) {
      OwnPixels own;
      own.first.fill(1);
      own.block_words = 1;
      exchange_halo(writer_, output_, &own);
    }
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
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
    const Region in = region_of(input_, output_, tile), out = own_region(output_, tile);
    std::vector<std::int64_t> loops;
    if (in.pixels() > 1) loops = few_counts({in.columns, in.rows}, kMostParameterSteps);
    const int pixel_level = static_cast<int>(loops.size());
    loops.push_back(in.words);
    std::vector<Dim> still;
    for (const std::int64_t count : loops) still.push_back(repeat(count));
    const LoopNest written = walk(out);
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops(loops)
        .nest(t::kIn, walk(in))
        .nest(t::kOut, written)
        .nest(t::kParam, LoopNest(program_.line_of(op_.identity.line) * chip::kWideAddressUnitsPerLine, still))
        .nest(t::kPsum, LoopNest(0, still))
        .wait(TileCounter::kNarrowToWide, {pixel_level + 1, writer_.total(TileCounter::kNarrowToWide, tile), 1})
        .signal(t::kSignalAvdata, static_cast<int>(written.dims().size()) - 1)
        .signal(t::kSignalParameters, pixel_level)
        .set(t::kAccumulateInside)
        .set(t::kInZero, op_.input_zero)
        .set(t::kPsumGroup)
        .set(t::kScalingLevel, pixel_level)
        .set(t::kCells, kWord)
        .set(t::kLastCells, kWord)
        .set_float(t::kScale, op_.multiplier)
        .set(t::kConstant, op_.bias)
        .set(t::kOutZero, op_.output_zero);
    if (op_.function == TableFunction::kNone) {
      draft.set_float(t::kMax, op_.clamp.max).set_float(t::kMin, op_.clamp.min);
    } else {
      const numeric::ChipFunction function = function_of(op_);
      draft.set_float(t::kMax, function.max)
          .set_float(t::kMin, function.min)
          .set(t::kActivation)
          .set(t::kOddSymmetry, function.is_odd ? 3 : 0);
    }
    return draft;
  }

  ProgramWriter& writer_;
  const tiled::TiledProgram& program_;
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
      draft.set_float(a::coefficient(s, p), table.segments[static_cast<std::size_t>(s)][static_cast<std::size_t>(p)]);
    }
  }
  for (int k = 0; k < a::kBreakpoints; ++k) {
    draft.set_float(a::breakpoint(k), table.breaks[static_cast<std::size_t>(k)]);
  }
  writer.add(draft);
}

void emit_step(Emission& to, const tiled::Elementwise& op) { ElementwiseWriter(to, op).write(); }

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// The weighted sum of two tensors: one instruction walks through both at a fixed distance.
//
// Weights are 16 bits wide, so that a step takes two bytes and a result of four channels takes four: the first and the
// last two channels of an operand, times two operands. Lines of weights (a word is two weights of a cell):
//   line 0   a, channels 0 and 1     cell 0: (a, 0)   cell 1: (0, a)   cells 2, 3: 0
//   line 1   a, channels 2 and 3     cells 0, 1: 0    cell 2: (a, 0)   cell 3: (0, a)
//   lines 2 and 3                    the same with b
// Weights are unsigned; negative ones are had by a parameter zero point.
//
// Waits: the weights' lines are made behind a fence, so that their memory is free and counters are 0; multiply_add
// waits for NARROW_TO_WIDE. The halo of the result is exchanged word by word of channels, as they are finished.
//
// How it is known: as Google's newest compiler writes ADD (docs/hardware/google_programs.md#add), whatever the weights.
// That a sum goes through a table is its way of SQUARED_DIFFERENCE (docs/hardware/public_files.md#larger-files).
#include <algorithm>

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;

std::array<std::uint32_t, tiled::kSumWords> weight_words(std::int32_t first, std::int32_t second, std::int32_t zero) {
  const auto pair = [&](std::int32_t low, std::int32_t high) {
    return static_cast<std::uint32_t>(low + zero) | static_cast<std::uint32_t>(high + zero) << 16;
  };
  std::array<std::uint32_t, tiled::kSumWords> words;
  words.fill(pair(0, 0));
  std::size_t at = 0;
  for (const std::int32_t weight : {first, second}) {
    words[at] = words[at + 6] = pair(weight, 0);
    words[at + 1] = words[at + 7] = pair(0, weight);
    at += 8;
  }
  return words;
}

class SumWriter : BlockWriter {
 public:
  SumWriter(Emission& to, const tiled::Sum& sum) : BlockWriter(to), sum_(sum), output_(to.program.tensor(sum.output)) {
    // The instruction walks from the lower address to the higher.
    const bool in_order = program_.tensor(sum.a).address <= program_.tensor(sum.b).address;
    first_ = &program_.tensor(in_order ? sum.a : sum.b);
    second_ = &program_.tensor(in_order ? sum.b : sum.a);
    first_weight_ = in_order ? sum.a_weight : sum.b_weight;
    second_weight_ = in_order ? sum.b_weight : sum.a_weight;
    weight_zero_ = std::max({0, -sum.a_weight, -sum.b_weight});
  }

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_lines(writer_, weight_words(first_weight_, second_weight_, weight_zero_), tiled::kSumWords / tiled::kSumLines,
               program_.address_of(sum_.words), program_.line_of(sum_.lines));
    if (sum_.function) load_table(writer_, sum_.function->table, output_.owners());
    add_each(writer_, output_.owners(), [&](int tile) { return work_of(tile); });
    OwnPixels own;
    own.first.fill(1);
    own.block_words = 1;
    exchange_halo(writer_, output_, &own);
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  static LoopNest results(const Region& out) {
    return {out.first_byte,
            {step(kWord, 1), step(out.pitch, out.columns), step(out.row_bytes, out.rows), step(out.buffer_bytes, 1),
             step(kWord, out.words)}};
  }

  Draft work_of(int tile) const {
    const Region in = region_of(*first_, output_, tile), out = own_region(output_, tile);
    const std::int64_t distance = region_of(*second_, output_, tile).first_byte - in.first_byte;
    std::vector<std::int64_t> loops = {2, 2};
    for (const std::int64_t count : {in.columns, in.rows}) {
      if (count > 1) loops.push_back(count);
    }
    loops.push_back(in.words);
    const int all = static_cast<int>(loops.size());
    std::vector<Dim> lines = {step(chip::kWideAddressUnitsPerLine, tiled::kSumLines)};
    std::vector<Dim> sums = {repeat(tiled::kSumLines)};
    for (const std::int64_t count : few_counts({in.columns, in.rows, in.words}, kMostParameterSteps)) {
      lines.push_back(repeat(count));
      sums.push_back(repeat(count));
    }
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops(loops)
        .nest(t::kIn,
              LoopNest(in.first_byte, {step(2, 2), step(distance, 2), step(in.pitch, in.columns),
                                       step(in.row_bytes, in.rows), step(in.buffer_bytes, 1), step(kWord, in.words)}))
        .nest(t::kOut, results(out))
        .nest(t::kParam, LoopNest(program_.line_of(sum_.lines) * chip::kWideAddressUnitsPerLine, lines))
        .nest(t::kPsum, LoopNest(0, sums))
        .wait(TileCounter::kNarrowToWide, {all, writer_.total(TileCounter::kNarrowToWide, tile), 1})
        .signal(t::kSignalAvdata, 4)
        .sums_inside()
        .set(t::kParam16)
        .set(t::kParamZero, weight_zero_)
        .set(t::kPsumGroupLevel, 1)
        .set(t::kReduceDims, 3)
        .set(t::kScalingLevel, all - 1)
        .cells(kWord)
        .set(t::kConstant, sum_.offset);
    set_results(draft, sum_);
    return draft;
  }

  const tiled::Sum& sum_;
  const tiled::TiledTensor& output_;
  const tiled::TiledTensor *first_ = nullptr, *second_ = nullptr;
  std::int32_t first_weight_ = 0, second_weight_ = 0, weight_zero_ = 0;
};

}  // namespace

void set_results(Draft& draft, const tiled::WeightedSum& sum) {
  draft.set_float(t::kScale, sum.multiplier)
      .set_float(t::kMax, sum.function ? sum.function->max : sum.clamp.max)
      .set_float(t::kMin, sum.function ? sum.function->min : sum.clamp.min)
      .set(t::kActivation, sum.function ? 1 : 0)
      .set(t::kOutZero, sum.output_zero);
}

void emit_step(Emission& to, const tiled::Sum& sum) { SumWriter(to, sum).write(); }

}  // namespace reef::emit

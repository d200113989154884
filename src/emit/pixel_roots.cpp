// SPDX-License-Identifier: Apache-2.0
// One over the root of the sum of squares of each pixel's channels, in two parts of which one is 0.
//
//   narrow_to_wide   words of a pixel's channels to two lines in turn, a word to a line: four parameters of cell 0
//   multiply_add     a word of the pixel by itself as parameters; the sum over all words, by the table of roots
// That is done four times, with different ends. S is the sum:
//   root     one over the root of S, as 16 bits
//   limit    65535 where the other part is to be used, by S and the split: far too steep a line, cut off at both ends
// for either part; then root - limit, cut off at 0, is the part.
// Waits: lines are handed over by NARROW_TO_WIDE and PARAMETERS; fences part everything else.
//
// How it is known: the table and its mode are those of SOFTMAX (docs/hardware/arithmetic.md#softmax), where the sum is
// one of parameters; words by themselves as parameters are as in MUL. That they are put together so is our own; no
// program of Google's with L2_NORMALIZATION is known. What the table gives for a sum of 0 is not known; it is
// multiplied by 0.

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"
#include "numeric/chip_squares.h"
#include "numeric/chip_tables.h"
#include "tiled/pool.h"

namespace reef::emit {
namespace {

using tiled::kPixelFactorBytes;
namespace t = isa::tensor_op;
namespace m = isa::movers;

constexpr float kMost = 65535;

class RootWriter : BlockWriter {
 public:
  RootWriter(Emission& to, const tiled::PixelRoots& step)
      : BlockWriter(to),
        step_(step),
        input_(to.program.tensor(step.input)),
        root_(to.program.address_of(step.scratch)),
        limit_(root_ + step.limit_offset),
        line_(to.program.line_of(step.lines)) {}

  void write() {
    // Byte 0 of each cell counts +1, byte 1 counts -1: parameters are 1 larger.
    constexpr std::array<std::uint32_t, tiled::kRootSelectorWords> kDifference = {2, 2, 2, 2};
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_lines(writer_, kDifference, tiled::kRootSelectorWords, program_.address_of(step_.selector_words),
               program_.line_of(step_.selector));
    constexpr std::int32_t kSplit = numeric::kRootSplit;
    part({numeric::kFineRoot, kSplit, -kMost, step_.fine});
    part({numeric::kCoarseRoot, kSplit - 1, kMost, step_.coarse});
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  struct RootPart {
    float one = 1;          // that the root divides
    std::int32_t from = 0;  // the limit is 65535 where (S - from) * slope is that much, 0 where it is not above 0
    float slope = 1;
    std::int32_t result = -1;  // TiledProgram::narrow
  };

  void part(const RootPart& part) {
    writer_.tile_fence(kAllUnits, 0);
    load_table(writer_, numeric::chip_inverse_root(part.one).table, input_.owners());
    sums([&](Draft& draft) { results(draft, root_).set(t::kActivation).set(t::kReciprocalRoot).unscaled(); });
    writer_.tile_fence(kAllUnits, 0);
    sums([&](Draft& draft) {
      results(draft, limit_)
          .set(t::kConstant, -part.from)
          .set_float(t::kScale, part.slope)
          .set_float(t::kMax, kMost)
          .set_float(t::kMin, 0.0f);
    });
    writer_.tile_fence(kAllUnits, 0);
    add_each(writer_, input_.owners(), [&](int tile) { return difference(tile, part.result); });
  }

  Draft& results(Draft& draft, std::int64_t address) const {
    return draft.set(t::kOut16).nest(
        t::kOut, LoopNest(address, {step(kWord, kPixelFactorBytes / kWord), step(kPixelFactorBytes, pixels_)}));
  }

  // Sums of squares of all pixels; `end` says what becomes of them.
  template <typename End>
  void sums(const End& end) {
    // Both wait for what the other has done before: they are drafted before either is added.
    std::vector<Draft> drafts;
    add_each(drafts, input_.owners(), [&](int tile) { return to_lines(tile); });
    add_each(drafts, input_.owners(), [&](int tile) {
      Draft draft = squares(tile);
      pixels_ = own_region(input_, tile).pixels();
      end(draft);
      return draft;
    });
    for (Draft& draft : drafts) writer_.add(std::move(draft));
  }

  Draft to_lines(int tile) const {
    const Region in = own_region(input_, tile);
    Draft draft(Opcode::kNarrowToWide);
    draft
        .nest(m::kToWideIn, LoopNest(in.first_byte / kWord, {step(1, in.words), step(in.pitch / kWord, in.columns),
                                                             step(in.row_bytes / kWord, in.rows)}))
        .nest(m::kToWideOut, LoopNest(line_, {repeat(in.words), repeat(in.columns), repeat(in.rows)}).swap(0, 1))
        .wait(TileCounter::kParameters, {0, writer_.total(TileCounter::kParameters, tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 0);
    return draft;
  }

  Draft squares(int tile) const {
    const Region in = own_region(input_, tile);
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops({1, in.words, in.columns, in.rows})
        .nest(t::kIn,
              LoopNest(in.first_byte, {step(kWord, in.words), step(in.pitch, in.columns), step(in.row_bytes, in.rows)}))
        .nest(t::kParam,
              LoopNest(line_ * kQuarters, {step(1, 1), repeat(in.words), repeat(in.columns), repeat(in.rows)})
                  .swap(1, kQuarters))
        .nest(t::kPsum, LoopNest(0, {repeat(in.words), repeat(in.columns), repeat(in.rows)}))
        .wait(TileCounter::kNarrowToWide, {1, writer_.total(TileCounter::kNarrowToWide, tile) + 1, 1})
        .signal(t::kSignalParameters, 1)
        .sums_inside()
        .set(t::kPsumGroupLevel, 1)
        .set(t::kInZero, step_.input_zero)
        .set(t::kParamZero, step_.input_zero)
        .set(t::kScalingLevel, 4)
        .cells(kWord);
    return draft;
  }

  Draft difference(int tile, std::int32_t result) {
    pixels_ = own_region(input_, tile).pixels();
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops({2, pixels_})
        .nest(t::kIn, LoopNest(root_, {step(limit_ - root_, 2), step(kPixelFactorBytes, pixels_)}))
        .nest(t::kParam, LoopNest(program_.line_of(step_.selector) * kQuarters, {step(1, 2), repeat(pixels_)}))
        .nest(t::kPsum, LoopNest(0, {repeat(2), repeat(pixels_)}))
        .sums_inside()
        .set(t::kPsumGroupLevel, 1)
        .set(t::kIn16)
        .set(t::kLanesOff, 6)
        .set(t::kParamZero, 1)
        .set(t::kScalingLevel, 2)
        .cells(kWord)
        .set_float(t::kScale, 1.0f)
        .set_float(t::kMax, kMost)
        .set_float(t::kMin, 0.0f);
    results(draft, program_.address_of(result));
    return draft;
  }

  const tiled::PixelRoots& step_;
  const tiled::TiledTensor& input_;
  const std::int64_t root_, limit_, line_;
  std::int64_t pixels_ = 0;  // of the tile whose instruction is being written
};

}  // namespace

void emit_step(Emission& to, const tiled::PixelRoots& step) { RootWriter(to, step).write(); }

}  // namespace reef::emit

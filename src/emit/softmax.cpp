// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of a row that one tile has, in five tensor operations:
//
//   maximum      255 - m, where m is the largest input
//   numerators   e = 65535 * exp((x - m) * scale), 16 bits: identity, 255 - m as bias, -255 as constant, table
//   root         r = 46340 / sqrt(sum of e / 65535), 16 bits: sum, table
//   inverse      y = r * r / 65535, 16 bits
//   result       e * y * 256 / (65535 * 32767)
//
// Maximum and sum take parameters only. Words go to lines one by one, each into four cells (so that all of them find
// the same), through two lines in turn; narrow_to_wide waits for PARAMETERS, the line before last is used, the tensor
// operation for NARROW_TO_WIDE, the line is there. Everything else is kept in order by fences.
//
// A row whose last word is not full: the bytes behind its end are set to 0, which no maximum takes any notice of, by
// an identity line that lacks their ones. Their numerators are not summed: of a word with one of them, the halves
// are put into different cells.
//
// How it is known: the numbers are those of Google's newest compiler (ops.md 4), which takes more steps: it rounds
// x - m to a byte, which loses nothing, and works on all tiles with some 240 copies over the ring. Maximum, sum with
// root and the products are its operations. That a maximum can be negated by its scale is inferred: Google's programs
// have negative scales only in lines, one per cell (PRELU, MUL).
#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

using isa::Opcode;
namespace t = isa::tensor_op;
namespace m = isa::movers;

constexpr std::int64_t kWord = chip::kNarrowWordBytes;
constexpr std::int64_t kQuarters = chip::kWideAddressUnitsPerLine;
constexpr std::int64_t kCopies = 4;  // cells that find the same
constexpr std::int64_t kMostByte = 255;
constexpr float kOutputScale = 1.0f / 256;

class SoftmaxWriter {
 public:
  SoftmaxWriter(Emission& to, const tiled::Softmax& step)
      : writer_(to.writer),
        program_(to.program),
        step_(step),
        elements_(to.program.tensor(step.input).channels),
        words_((elements_ + kWord - 1) / kWord),
        layout_(tiled::NumeratorLines::of(static_cast<std::int32_t>(elements_))),
        input_(own_region(to.program.tensor(step.input), step.tile).first_byte),
        output_(own_region(to.program.tensor(step.output), step.tile).first_byte),
        mask_(to.program.address_of(step.words)),
        maximum_(mask_ + 4 * kWord),
        root_(maximum_ + 4 * kWord),
        inverse_(root_ + 2 * kWord),
        numerators_(to.program.address_of(step.numerators)),
        two_lines_(to.program.line_of(step.lines)),
        constant_line_(two_lines_ + 2),
        numerator_line_(two_lines_ + tiled::kSoftmaxLines) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_identity(writer_, program_, step_.identity);
    make_constants();
    writer_.tile_fence(kAllUnits, 0);
    if (elements_ % kWord != 0) clear_last_bytes();
    maximum();
    writer_.tile_fence(kAllUnits, 0);
    numerators();
    writer_.tile_fence(kAllUnits, 0);
    root();
    writer_.tile_fence(kAllUnits, 0);
    inverse();
    writer_.tile_fence(kAllUnits, 0);
    result();
  }

 private:
  TileMask tile() const { return tiled::mask_of(step_.tile); }
  std::int64_t total(TileCounter counter) const { return writer_.total(counter, step_.tile); }
  static std::int64_t word(std::int64_t byte) { return byte / kWord; }

  void fill(std::int64_t byte, std::int64_t words, std::int64_t value) {
    namespace mesh = isa::mesh;
    writer_.add(Draft(Opcode::kMeshNorth)
                    .tiles(tile())
                    .nest(mesh::kOut, LoopNest(word(byte), {step(1, words)}))
                    .set(mesh::kFill)
                    .set(mesh::kFillValue, value));
  }
  // The mask if there is one, and zeros up to behind the maximum.
  void make_constants() {
    const std::int64_t last = elements_ % kWord;
    for (std::int64_t k = 0; k < last; ++k) fill(mask_ + k * kWord, 1, std::int64_t{1} << (8 * k));
    const std::int64_t zeros = last == 0 ? maximum_ + kWord : mask_ + last * kWord;
    fill(zeros, word(root_ - zeros), 0);
  }

  // Words to lines, `kCopies` cells each.
  Draft to_line(std::int64_t byte, const std::vector<Dim>& dims, std::int64_t line) const {
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tile())
        .nest(m::kToWideIn, LoopNest(word(byte), dims))
        .nest(m::kToWideOut, LoopNest(line, {step(1, 1)}))
        .set(m::kToWideLineLevel, static_cast<int>(dims.size()))
        .signal(m::kSignalNarrowToWide, 1);
    return draft;
  }
  // `used`: PARAMETERS before the first of these lines is used.
  Draft to_lines_in_turn(std::int64_t byte, const std::vector<Dim>& in_line, std::int64_t lines,
                         std::int64_t used) const {
    std::vector<Dim> dims = in_line;
    dims.push_back(step(1, lines));
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tile())
        .nest(m::kToWideIn, LoopNest(word(byte), dims))
        .nest(m::kToWideOut, LoopNest(two_lines_, {repeat(lines)}).swap(0, 1))
        .set(m::kToWideLineLevel, static_cast<int>(in_line.size()))
        .wait(TileCounter::kParameters, {0, used - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 0);
    return draft;
  }

  // A result for each group of `group` inner dimensions of the steps; four cells.
  Draft operation(Opcode opcode, const std::vector<std::int64_t>& loops, int group) const {
    std::vector<Dim> sums;
    for (const std::int64_t count : loops) sums.push_back(repeat(count));
    Draft draft(opcode);
    draft.tiles(tile())
        .loops(loops)
        .nest(t::kPsum, LoopNest(0, sums))
        .set(t::kPsumGroup)
        .set(t::kPsumGroupLevel, group)
        .set(t::kAccumulateInside)
        .set(t::kScalingLevel, static_cast<int>(loops.size()))
        .set(t::kCells, kCopies)
        .set(t::kLastCells, kCopies);
    return draft;
  }
  static void requantize(Draft& draft, float scale, float max, float min) {
    draft.set_float(t::kScale, scale).set_float(t::kMax, max).set_float(t::kMin, min);
  }
  static LoopNest one_word(std::int64_t byte) { return LoopNest(byte, {step(kWord, 1)}); }
  static LoopNest two_words(std::int64_t byte) { return LoopNest(byte, {step(kWord, 2)}); }

  void clear_last_bytes() {
    const std::int64_t filled = total(TileCounter::kNarrowToWide);
    const std::int64_t last = input_ + (words_ - 1) * kWord;
    writer_.add(to_line(mask_, {step(1, 4)}, constant_line_));
    Draft draft = operation(Opcode::kMultiplyAdd, {1}, 0);
    requantize(draft, 1.0f, kMostByte, 0);
    writer_.add(draft.nest(t::kIn, one_word(last))
                    .nest(t::kOut, one_word(last))
                    .nest(t::kParam, LoopNest(constant_line_ * kQuarters, {step(1, 1)}))
                    .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1}));
    writer_.tile_fence(kAllUnits, 0);
  }

  void maximum() {
    const std::int64_t filled = total(TileCounter::kNarrowToWide), used = total(TileCounter::kParameters);
    writer_.add(to_lines_in_turn(input_, {repeat(kCopies)}, words_, used));
    Draft draft = operation(Opcode::kMaximum, {kQuarters, words_}, 2);
    requantize(draft, -1.0f, 0, -kMostByte);
    writer_.add(
        draft.nest(t::kOut, one_word(maximum_))
            .nest(t::kParam, LoopNest(two_lines_ * kQuarters, {step(1, kQuarters), repeat(words_)}).swap(1, kQuarters))
            .set(t::kOutZero, kMostByte)
            .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1})
            .signal(t::kSignalParameters, 1));
  }

  void numerators() {
    const numeric::ChipFunction exp = numeric::chip_exp();
    const std::int64_t filled = total(TileCounter::kNarrowToWide), loaded = total(TileCounter::kWideToScaling);
    // The maximum and three words of zeros, transposed: four numbers of 32 bits.
    writer_.add(to_line(maximum_, {step(1, 4)}, constant_line_).set(m::kTranspose));
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tile())
                    .nest(m::kToNarrowIn, LoopNest(constant_line_, {step(1, 1)}))
                    .nest(m::kToNarrowOut, LoopNest(chip::kScalingBiasesWord, {step(1, kCopies / 2)}))
                    .set(m::kToScaling)
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1})
                    .signal(m::kSignalWideToNarrow, 1));
    load_table(writer_, exp.table);
    Draft draft = operation(Opcode::kMultiplyAdd, {words_}, 0);
    requantize(draft, step_.scale, exp.max, exp.min);
    writer_.add(draft.nest(t::kIn, LoopNest(input_, {step(kWord, words_)}))
                    .nest(t::kOut, LoopNest(numerators_, {step(kWord, 2), step(2 * kWord, words_)}))
                    .nest(t::kParam, LoopNest(program_.line_of(step_.identity.line) * kQuarters, {repeat(words_)}))
                    .set(t::kBias)
                    .set(t::kConstant, -kMostByte)
                    .set(t::kActivation)
                    .set(t::kOut16)
                    .wait(TileCounter::kWideToScaling, {1, loaded + 1, 1}));
  }

  void root() {
    load_table(writer_, numeric::chip_root_table());
    const std::int64_t whole = elements_ / 2, odd = elements_ % 2;
    const std::int64_t filled = total(TileCounter::kNarrowToWide), used = total(TileCounter::kParameters);
    if (whole > 0) writer_.add(to_lines_in_turn(numerators_, {repeat(kCopies)}, whole, used));
    if (odd != 0) {
      const std::int64_t last = numerators_ + whole * kWord;
      const std::int64_t zero = maximum_ + kWord;
      writer_.add(to_lines_in_turn(last, {step(word(zero) - word(last), 2), repeat(kCopies / 2)}, 1, used + whole)
                      .set(m::kTranspose)
                      .set(m::kTransposeHalves));
    }
    Draft draft = operation(Opcode::kSum, {whole + odd}, 1);
    constexpr float kEverything = std::numeric_limits<float>::infinity();
    requantize(draft, 1.0f / numeric::kChipExpOne, kEverything, -kEverything);
    writer_.add(draft.nest(t::kOut, two_words(root_))
                    .nest(t::kParam, LoopNest(two_lines_ * kQuarters, {repeat(whole + odd)}).swap(0, kQuarters))
                    .set(t::kParam16)
                    .set(t::kActivation)
                    .set(t::kReciprocalRoot)
                    .set(t::kOut16)
                    .wait(TileCounter::kNarrowToWide, {0, filled + 1, 1})
                    .signal(t::kSignalParameters, 0));
  }

  void inverse() {
    const std::int64_t filled = total(TileCounter::kNarrowToWide);
    constexpr float kMostInverse = 32768;
    writer_.add(to_line(root_, {repeat(kCopies)}, constant_line_));
    Draft draft = operation(Opcode::kMultiplyAdd, {1}, 0);
    requantize(draft, 1.0f / numeric::kChipExpOne, kMostInverse, 0);
    writer_.add(draft.nest(t::kIn, LoopNest(root_, {step(2, 1)}))
                    .nest(t::kOut, two_words(inverse_))
                    .nest(t::kParam, LoopNest(constant_line_ * kQuarters, {step(1, 1)}))
                    .set(t::kIn16)
                    .set(t::kParam16)
                    .set(t::kOut16)
                    .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1}));
    // Meanwhile, numerators to parameters: in each line the second half of its words beside the first.
    const std::int64_t half = layout_.half;
    writer_.add(Draft(Opcode::kNarrowToWide)
                    .tiles(tile())
                    .nest(m::kToWideIn,
                          LoopNest(word(numerators_), {step(half, 2), step(1, half), step(2 * half, layout_.lines)}))
                    .nest(m::kToWideOut, LoopNest(numerator_line_, {step(1, layout_.lines)}))
                    .set(m::kToWideLineLevel, 2)
                    .set(m::kTranspose)
                    .set(m::kTransposeHalves));
  }

  void result() {
    const float unit = 1.0f / numeric::kChipRootOne;
    const std::int64_t cells = 2 * std::int64_t{layout_.half};
    Draft draft = operation(Opcode::kMultiplyAdd, {2, layout_.lines}, 0);
    requantize(draft, numeric::chip_product_multiplier(unit, unit, kOutputScale), kMostByte, 0);
    writer_.add(
        draft.nest(t::kIn, LoopNest(inverse_, {repeat(2), repeat(layout_.lines)}))
            .nest(t::kOut, LoopNest(output_, {step(kWord, word(cells)), step(cells, 2 * layout_.lines)}))
            .nest(t::kParam, LoopNest(numerator_line_ * kQuarters, {step(2, 2), step(kQuarters, layout_.lines)}))
            .set(t::kCells, cells)
            .set(t::kLastCells, cells)
            .set(t::kIn16)
            .set(t::kParam16));
  }

  ProgramWriter& writer_;
  const tiled::TiledProgram& program_;
  const tiled::Softmax& step_;
  const std::int64_t elements_, words_;
  const tiled::NumeratorLines layout_;
  const std::int64_t input_, output_, mask_, maximum_, root_, inverse_, numerators_;  // bytes
  const std::int64_t two_lines_, constant_line_, numerator_line_;
};

}  // namespace

void emit_step(Emission& to, const tiled::Softmax& step) { SoftmaxWriter(to, step).write(); }

}  // namespace reef::emit

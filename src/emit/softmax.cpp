// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of rows, each a pixel that a tile owns, in five tensor operations:
//
//   maximum      255 - m, where m is the largest element of a row
//   numerators   e = 65535 * exp((x - m) * scale), 16 bits: identity, 255 - m as bias, -255 as constant, table
//   root         r = 46340 / sqrt(sum of e / 65535), 16 bits: sum, table
//   inverse      y = r * r / 65535, 16 bits
//   result       e * y * 256 / (65535 * 32767)
//
// Maximum and sum take parameters only. Words go to lines one by one, each into four cells (so that all of them find
// the same), through two lines in turn; narrow_to_wide waits for PARAMETERS, the line before last is used, the tensor
// operation for NARROW_TO_WIDE, the line is there. Biases go on to scaling memory, to its two halves in turn:
// wide_to_narrow waits for AVDATA, the row before last is done with its half. Everything else is kept in order by
// fences.
//
// Rows whose last word is not full: the bytes behind the end are set to 0, which no maximum takes any notice of, by an
// identity line that lacks their ones; so is a numerator that shares a word with the last one of a row.
//
// How it is known: the numbers are those of Google's newest compiler (docs/hardware/arithmetic.md#softmax), which takes
// more steps: it rounds x - m to a byte, which loses nothing, and works on all tiles with some 240 copies over the
// ring. Maximum, sum with root and the products are its operations. That a maximum can be negated by its scale is
// inferred: Google's programs have negative scales only in lines, one per cell (PRELU, MUL).
#include <limits>

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;
namespace m = isa::movers;

constexpr std::int64_t kCopies = 4;  // cells that find the same
constexpr std::int64_t kMostByte = 255;
constexpr std::int64_t kMaskWords = 4;
constexpr float kOutputScale = 1.0f / 256;

class SoftmaxWriter : BlockWriter {
 public:
  SoftmaxWriter(Emission& to, const tiled::Softmax& step)
      : BlockWriter(to),
        step_(step),
        input_(to.program.tensor(step.input)),
        output_(to.program.tensor(step.output)),
        elements_(input_.channels),
        words_((elements_ + kWord - 1) / kWord),
        layout_(tiled::NumeratorLines::of(input_.channels)),
        mask_(to.program.address_of(step.words)),
        numerators_(to.program.address_of(step.numerators)),
        lines_(to.program.line_of(step.lines)),
        constant_line_(lines_ + 2 * std::int64_t{layout_.lines}) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    make_identity(writer_, program_, step_.identity);
    for_each_shape([&] { make_constants(); });
    fence();
    if (elements_ % kWord != 0) {
      for_each_shape([&] { clear_last_bytes(); });
      fence();
    }
    for_each_shape([&] { maximum(); });
    fence();
    load_table(writer_, numeric::chip_exp().table);
    for_each_shape([&] { numerators(); });
    fence();
    if (elements_ % 2 != 0) {
      for_each_shape([&] { clear_last_numerator(); });
      fence();
    }
    load_table(writer_, numeric::chip_root_table());
    for_each_shape([&] { root(); });
    fence();
    for_each_shape([&] { inverse(); });
    fence();
    for_each_shape([&] { result(); });
    if (output_.spread != tiled::Spread::kGrid || !output_.has_halo()) return;
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    exchange_halo(writer_, output_, nullptr);
  }

 private:
  void fence() { writer_.tile_fence(kAllUnits, 0); }
  // Tiles whose pixels lie in the same way have the same instructions.
  template <typename Write>
  void for_each_shape(const Write& write) {
    for_each_class(
        step_.tiles,
        [&](int tile) {
          return Shape{region_of(input_, output_, tile), own_region(output_, tile)};
        },
        [&](TileMask tiles, const Shape& shape) {
          tiles_ = tiles;
          in_ = shape.in;
          out_ = shape.out;
          small_ = tiled::SoftmaxWords::of(pixels());
          write();
        });
  }
  struct Shape {
    Region in, out;
    friend bool operator==(const Shape& a, const Shape& b) {
      const auto same = [](const Region& x, const Region& y) {
        return x.first_byte == y.first_byte && x.columns == y.columns && x.rows == y.rows && x.row_bytes == y.row_bytes;
      };
      return same(a.in, b.in) && same(a.out, b.out);
    }
  };
  std::int64_t pixels() const { return in_.pixels(); }
  int first_tile() const {
    int tile = 0;
    while ((tiles_ & tiled::mask_of(tile)) == 0) ++tile;
    return tile;
  }
  std::int64_t total(TileCounter counter) const { return writer_.total(counter, first_tile()); }
  static std::int64_t word(std::int64_t byte) { return byte / kWord; }
  std::int64_t maxima() const { return mask_ + small_.maxima; }
  std::int64_t roots() const { return mask_ + small_.roots; }
  std::int64_t inverses() const { return mask_ + small_.inverses; }
  std::int64_t numerator_bytes() const { return layout_.bytes(); }  // of a pixel

  // Pixels of a region behind the dimensions of one of them. `unit`: bytes that addresses count.
  static std::vector<Dim> over_pixels(std::vector<Dim> dims, const Region& region, std::int64_t unit) {
    dims.push_back(step(region.pitch / unit, region.columns));
    dims.push_back(step(region.row_bytes / unit, region.rows));
    return dims;
  }

  void fill(std::int64_t byte, std::int64_t words, std::int64_t value) {
    namespace mesh = isa::mesh;
    writer_.add(Draft(Opcode::kMeshNorth)
                    .tiles(tiles_)
                    .nest(mesh::kOut, LoopNest(word(byte), {step(1, words)}))
                    .set(mesh::kFill)
                    .set(mesh::kFillValue, value));
  }
  // The mask if there is one, and zeros where maxima will be, and behind them.
  void make_constants() {
    const std::int64_t last = elements_ % kWord;
    for (std::int64_t k = 0; k < last; ++k) fill(mask_ + k * kWord, 1, std::int64_t{1} << (8 * k));
    const std::int64_t zeros = mask_ + last * kWord;
    fill(zeros, word(roots() - zeros), 0);
  }

  Draft to_constant_line(std::int64_t byte, const std::vector<Dim>& dims) const {
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tiles_)
        .nest(m::kToWideIn, LoopNest(word(byte), dims))
        .nest(m::kToWideOut, LoopNest(constant_line_, {step(1, 1)}))
        .set(m::kToWideLineLevel, static_cast<int>(dims.size()))
        .signal(m::kSignalNarrowToWide, 1);
    return draft;
  }
  // Lines are closed after `level` dimensions; `lines` in all, two in turn. `free`: counts when a line can be written
  // to, from its total on.
  Draft to_lines_in_turn(std::int64_t byte, const std::vector<Dim>& dims, int level, std::int64_t lines,
                         TileCounter free) const {
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tiles_)
        .nest(m::kToWideIn, LoopNest(word(byte), dims))
        .nest(m::kToWideOut, LoopNest(lines_, {repeat(lines)}).swap(0, 1))
        .set(m::kToWideLineLevel, level)
        .wait(free, {0, total(free) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 0);
    return draft;
  }

  // A result for each group of `group` inner loops; four cells.
  Draft operation(Opcode opcode, const std::vector<std::int64_t>& loops, int group) const {
    std::vector<Dim> sums;
    for (const std::int64_t count : loops) sums.push_back(repeat(count));
    Draft draft(opcode);
    draft.tiles(tiles_)
        .loops(loops)
        .nest(t::kPsum, LoopNest(0, sums))
        .set(t::kPsumGroupLevel, group)
        .sums_inside()
        .set(t::kScalingLevel, static_cast<int>(loops.size()))
        .cells(kCopies);
    return draft;
  }
  static void requantize(Draft& draft, float scale, float max, float min) {
    draft.set_float(t::kScale, scale).set_float(t::kMax, max).set_float(t::kMin, min);
  }
  // The constant line, again and again.
  LoopNest constants(std::int64_t times) const { return LoopNest(constant_line_ * kQuarters, {repeat(times)}); }

  // One word of each row through the mask, in place.
  void clear_last_bytes() {
    const std::int64_t filled = total(TileCounter::kNarrowToWide);
    const LoopNest last(in_.first_byte + (words_ - 1) * kWord, over_pixels({step(kWord, 1)}, in_, 1));
    writer_.add(to_constant_line(mask_, {step(1, kMaskWords)}));
    Draft draft = operation(Opcode::kMultiplyAdd, {pixels()}, 0);
    requantize(draft, 1.0f, kMostByte, 0);
    writer_.add(draft.nest(t::kIn, last)
                    .nest(t::kOut, last)
                    .nest(t::kParam, constants(pixels()))
                    .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1}));
  }

  void maximum() {
    const std::int64_t filled = total(TileCounter::kNarrowToWide), lines = words_ * pixels();
    writer_.add(to_lines_in_turn(in_.first_byte, over_pixels({repeat(kCopies), step(1, words_)}, in_, kWord), 1, lines,
                                 TileCounter::kParameters));
    Draft draft = operation(Opcode::kMaximum, {kQuarters, words_, pixels()}, 2);
    requantize(draft, -1.0f, 0, -kMostByte);
    writer_.add(
        draft.nest(t::kOut, LoopNest(maxima(), {step(kWord, 1), step(tiled::SoftmaxWords::kMaximum, pixels())}))
            .nest(
                t::kParam,
                LoopNest(lines_ * kQuarters, {step(1, kQuarters), repeat(words_), repeat(pixels())}).swap(1, kQuarters))
            .set(t::kOutZero, kMostByte)
            .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1})
            .signal(t::kSignalParameters, 1));
  }

  void numerators() {
    const numeric::ChipFunction exp = numeric::chip_exp();
    const std::int64_t filled = total(TileCounter::kNarrowToWide), loaded = total(TileCounter::kWideToScaling);
    const std::int64_t done = total(TileCounter::kAvdata), n = pixels();
    // A maximum and three words of zeros, transposed: four numbers of 32 bits.
    writer_.add(to_lines_in_turn(maxima(), {step(1, kCopies), step(kCopies, n)}, 1, n, TileCounter::kWideToScaling)
                    .set(m::kTranspose));
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tiles_)
                    .nest(m::kToNarrowIn, LoopNest(lines_, {repeat(n)}).swap(0, 1))
                    .nest(m::kToNarrowOut,
                          LoopNest(chip::kScalingBiasesWord, {step(1, kCopies / 2), repeat(n)}).swap(1, kScalingHalf))
                    .set(m::kToScaling)
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kNarrowToWide, {0, filled + 1, 1})
                    .wait(TileCounter::kAvdata, {1, done - 1, 1}, Gate::kWriting)
                    .signal(m::kSignalWideToNarrow, 1));
    Draft draft = operation(Opcode::kMultiplyAdd, {words_, n}, 0);
    requantize(draft, step_.scale, exp.max, exp.min);
    writer_.add(
        draft.nest(t::kIn, LoopNest(in_.first_byte, over_pixels({step(kWord, words_)}, in_, 1)))
            .nest(t::kOut, LoopNest(numerators_, {step(kWord, 2), step(2 * kWord, words_), step(numerator_bytes(), n)}))
            .nest(t::kParam, LoopNest(program_.line_of(step_.identity.line) * kQuarters, {repeat(words_), repeat(n)}))
            .set(t::kScalingLevel, 1)
            .set(t::kBias)
            .set(t::kConstant, -kMostByte)
            .set(t::kActivation)
            .set(t::kOut16)
            .wait(TileCounter::kWideToScaling, {1, loaded + 1, 1})
            .signal(t::kSignalAvdata, 2));
  }

  // The last word of numerators of each row, of which only the first half is one: two words of the mask make a line
  // that takes it and nothing else.
  void clear_last_numerator() {
    const std::int64_t filled = total(TileCounter::kNarrowToWide);
    const LoopNest last(numerators_ + elements_ / 2 * kWord, {step(kWord, 1), step(numerator_bytes(), pixels())});
    writer_.add(to_constant_line(mask_, {step(kMaskWords - 1, 2)}));
    Draft draft = operation(Opcode::kMultiplyAdd, {pixels()}, 0);
    requantize(draft, 1.0f, numeric::kChipExpOne, 0);
    writer_.add(draft.nest(t::kIn, last)
                    .nest(t::kOut, last)
                    .nest(t::kParam, constants(pixels()))
                    .set(t::kIn16)
                    .set(t::kOut16)
                    .cells(2)
                    .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1}));
  }

  void root() {
    constexpr float kEverything = std::numeric_limits<float>::infinity();
    const std::int64_t filled = total(TileCounter::kNarrowToWide), n = pixels(), row_words = (elements_ + 1) / 2;
    writer_.add(to_lines_in_turn(numerators_, {repeat(kCopies), step(1, row_words), step(word(numerator_bytes()), n)},
                                 1, row_words * n, TileCounter::kParameters));
    Draft draft = operation(Opcode::kSum, {row_words, n}, 1);
    requantize(draft, 1.0f / numeric::kChipExpOne, kEverything, -kEverything);
    writer_.add(draft.nest(t::kOut, LoopNest(roots(), {step(kWord, 2), step(tiled::SoftmaxWords::kRoot, n)}))
                    .nest(t::kParam, LoopNest(lines_ * kQuarters, {repeat(row_words), repeat(n)}).swap(0, kQuarters))
                    .set(t::kParam16)
                    .set(t::kActivation)
                    .set(t::kReciprocalRoot)
                    .set(t::kOut16)
                    .wait(TileCounter::kNarrowToWide, {0, filled + 1, 1})
                    .signal(t::kSignalParameters, 0));
  }

  void inverse() {
    constexpr float kMostInverse = 32768;
    const std::int64_t filled = total(TileCounter::kNarrowToWide), n = pixels();
    constexpr std::int64_t kStep = tiled::SoftmaxWords::kRoot;
    writer_.add(to_lines_in_turn(roots(), {repeat(kCopies), step(word(kStep), n)}, 1, n, TileCounter::kParameters));
    Draft draft = operation(Opcode::kMultiplyAdd, {n}, 0);
    requantize(draft, 1.0f / numeric::kChipExpOne, kMostInverse, 0);
    writer_.add(draft.nest(t::kIn, LoopNest(roots(), {step(kStep, n)}))
                    .nest(t::kOut, LoopNest(inverses(), {step(kWord, 2), step(kStep, n)}))
                    .nest(t::kParam, LoopNest(lines_ * kQuarters, {repeat(n)}).swap(0, kQuarters))
                    .set(t::kIn16)
                    .set(t::kParam16)
                    .set(t::kOut16)
                    .wait(TileCounter::kNarrowToWide, {0, filled + 1, 1})
                    .signal(t::kSignalParameters, 0));
  }

  // Numerators as parameters: in each line the second half of its words beside the first. The last words of a row that
  // are computed lie behind its end, and are not stored.
  void result() {
    const float unit = 1.0f / numeric::kChipRootOne;
    const std::int64_t filled = total(TileCounter::kNarrowToWide), used = total(TileCounter::kParameters);
    const std::int64_t n = pixels(), half = layout_.half, lines = layout_.lines, cells = 2 * half;
    writer_.add(
        Draft(Opcode::kNarrowToWide)
            .tiles(tiles_)
            .nest(m::kToWideIn, LoopNest(word(numerators_), {step(half, 2), step(1, half), step(2 * half, lines),
                                                             step(word(numerator_bytes()), n)}))
            .nest(m::kToWideOut, LoopNest(lines_, {step(1, lines), repeat(n)}).swap(1, lines))
            .set(m::kToWideLineLevel, 2)
            .set(m::kTranspose)
            .set(m::kTransposeHalves)
            .wait(TileCounter::kParameters, {1, used - 1, 1}, Gate::kWriting)
            .signal(m::kSignalNarrowToWide, 1));
    const std::int64_t halves = words_ <= word(cells) ? 1 : 2;  // a row of one word is in the first
    Draft draft = operation(Opcode::kMultiplyAdd, {halves, lines, n}, 0);
    requantize(draft, numeric::chip_product_multiplier(unit, unit, kOutputScale), kMostByte, 0);
    writer_.add(
        draft.nest(t::kIn, LoopNest(inverses(), {repeat(halves), repeat(lines), step(tiled::SoftmaxWords::kRoot, n)}))
            .nest(t::kOut, results(word(cells), halves * lines))
            .nest(t::kParam, LoopNest(lines_ * kQuarters, {step(2, halves), step(kQuarters, lines), repeat(n)})
                                 .swap(2, kQuarters * lines))
            .cells(cells)
            .set(t::kIn16)
            .set(t::kParam16)
            .wait(TileCounter::kNarrowToWide, {2, filled + 1, 1})
            .signal(t::kSignalParameters, 2));
  }
  LoopNest results(std::int64_t words, std::int64_t times) const {
    LoopNest nest(out_.first_byte, over_pixels({step(kWord, words), step(kWord * words, times)}, out_, 1));
    const std::int64_t last_words = words_ - (times - 1) * words;
    if (last_words > 0) nest.clip(1, last_words);
    return nest;
  }

  const tiled::Softmax& step_;
  const tiled::TiledTensor& input_;
  const tiled::TiledTensor& output_;
  const std::int64_t elements_, words_;
  const tiled::NumeratorLines layout_;
  const std::int64_t mask_, numerators_;  // bytes
  const std::int64_t lines_, constant_line_;
  // Of the tiles that instructions are written for.
  TileMask tiles_ = 0;
  Region in_, out_;
  tiled::SoftmaxWords small_{};
};

}  // namespace

void emit_step(Emission& to, const tiled::Softmax& step) { SoftmaxWriter(to, step).write(); }

}  // namespace reef::emit

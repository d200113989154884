// SPDX-License-Identifier: Apache-2.0
// An LSTM, time step by time step: in a loop, or a few of them written out.
//
// All cells of the tensor unit see the same input, so that a product of two vectors, element by element, needs one of
// them as parameters, of which a cell may only have its own element (as in product.cpp). Where a vector is to become
// such parameters, the instruction that computes it makes more results than there are elements, all others of which are
// zero; narrow_to_wide then has nothing to do but to move words:
//
//   8 bits    four elements become four words (16 results): byte k of word k is element k. A line multiplies four
//             bytes at a step
//   16 bits   four elements become eight words, two lines: each multiplies two bytes, the first line those of cells 0
//             and 1, the second those of cells 2 and 3. Results 0, 3, 12 and 15 of 16 are elements
//
// Zero is the zero point of parameters, and what the functions are at 0 (tanh). 16-bit numbers have zero point 32768
// everywhere here: the sum c' of two of them needs no constant then, which would not be zero.
//
// A time step:
//   R h        of four gates, as a fully connected layer of four groups: each with multipliers of its own
//   i, f, o    (W x + b) + R h, two words at a step through the identity line; logistic
//   g          the same, spread; tanh. To lines
//   f c, i g   two products
//   c'         weighted sum, spread: once as the new state, once through tanh. Both to lines
//   h'         product of o and tanh(c')
// Waits: multiply_add for WIDE_TO_SCALING, the gate's multipliers are there, and wide_to_narrow for AVDATA, the gate
// before last is done with its half of scaling memory (as in convolution.cpp); fences where a result is read by the
// tensor unit or by narrow_to_wide; products wait for NARROW_TO_WIDE, the lines are there. Lines of the state are
// replaced behind a fence behind f c.
//
// How it is known: each instruction is used in a way that Google's programs have, too (its LSTM, SOFTMAX and copies);
// that they are put together so is our own. Google's LSTM makes one product at a step and packs four of them after.

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

using tiled::kLstmGates;
using tiled::LstmLines;
using tiled::LstmScratch;
namespace m = isa::movers;
namespace t = isa::tensor_op;

constexpr std::int64_t kLine = chip::kWideAddressUnitsPerLine;
constexpr std::int64_t kCellsPerScalingRow = 16;  // moved at a time, 8 steps
constexpr std::int32_t kWideZero = 1 << 15;
constexpr int kSpreadCells = 16;
// Results that are elements 0 to 3, of 8 and of 16 bits.
constexpr std::array<std::size_t, 4> kSpread = {0, 5, 10, 15}, kWideSpread = {0, 3, 12, 15};

class LstmWriter : protected BlockWriter {
 protected:
  LstmWriter(Emission& to, const tiled::LstmPlace& place)
      : BlockWriter(to),
        place_(place),
        scratch_(to.program.address_of(place.scratch)),
        inputs_(to.program.address_of(place.inputs)),
        first_line_(to.program.line_of(place.lines)),
        parameters_(to.program.chunk(place.parameters).at.front().line) {}

  void restart() { writer_.tile_fence(kAllUnits, kCountersOfTiles); }
  // Tiles with equally many words of cells together: emit(tiles, words).
  template <typename Emit>
  void for_each_size(const Emit& emit) {
    for_each_class(
        place_.tiles(), [&](int tile) { return place_.words_of(tile); }, emit);
  }
  std::int64_t line(std::int32_t which) const { return std::int64_t{first_line_ + which} * kLine; }

  Draft operation(TileMask tiles, const std::vector<std::int64_t>& loops, int cells) const {
    Draft draft(Opcode::kMultiplyAdd);
    return std::move(draft.tiles(tiles)
                         .loops(loops)
                         .set(t::kAccumulateInside)
                         .set(t::kScalingLevel, static_cast<int>(loops.size()))
                         .cells(cells));
  }
  static Draft& requantize(Draft& draft, float scale, const numeric::ChipClamp& clamp, std::int32_t zero) {
    return draft.set_float(t::kScale, scale)
        .set_float(t::kMax, clamp.max)
        .set_float(t::kMin, clamp.min)
        .set(t::kOutZero, zero);
  }
  // So many steps make a result.
  static Draft& sum_of(Draft& draft, std::int64_t steps, const std::vector<Dim>& results) {
    std::vector<Dim> dims = {repeat(steps)};
    dims.insert(dims.end(), results.begin(), results.end());
    return draft.nest(t::kPsum, LoopNest(0, dims)).set(t::kPsumGroup).set(t::kPsumGroupLevel, 1);
  }

  void make(std::span<const std::uint32_t> words, std::int32_t line_words, std::int32_t which) {
    restart();
    make_lines(writer_, words, line_words, scratch_ + LstmScratch::kConstants, first_line_ + which);
  }

  void make_constants(const numeric::ChipLstmStep& numbers) {
    std::array<std::uint32_t, 4> identity{};
    std::array<std::uint32_t, kSpreadCells> spreader{}, wide_spreader{};
    for (std::size_t k = 0; k < 4; ++k) {
      const std::uint32_t one = std::uint32_t{1} << (8 * k);
      identity[k] = spreader[kSpread[k]] = wide_spreader[kWideSpread[k]] = one;
    }
    // Two weights to a word, for steps one after the other: elements 0 to 3 of what is kept, then of the update.
    std::array<std::uint32_t, 4 * kSpreadCells> weights{};
    for (std::size_t k = 0; k < 8; ++k) {
      const auto weight = static_cast<std::uint32_t>(k < 4 ? numbers.kept_weight : numbers.update_weight);
      weights[k / 2 * kSpreadCells + kWideSpread[k % 4]] |= weight << (16 * (k % 2));
    }
    make(identity, 4, LstmLines::kIdentity);
    make(spreader, kSpreadCells, LstmLines::kSpreader);
    make(wide_spreader, kSpreadCells, LstmLines::kWideSpreader);
    make(weights, kSpreadCells, LstmLines::kStateWeights);
  }

  // The layers of all gates times `count` vectors, of which the first is at byte `from`; results of a vector, a slot
  // for each gate, to byte `to` and every `to_stride` bytes behind. Behind a fence that clears all counters.
  struct Vectors {
    std::int64_t from = 0, from_stride = 0, to = 0, to_stride = 0, count = 1;
  };
  void multiply(const tiled::LstmLayers& layers, const Vectors& at) {
    constexpr auto kGates = static_cast<std::int64_t>(kLstmGates);
    load_scaling(layers);
    const std::int64_t weights = (parameters_ + layers.first_line + layers.header_lines()) * kLine;
    for_each_size([&](TileMask tiles, std::int32_t words) {
      Draft draft = operation(tiles, {layers.words, at.count, kGates}, static_cast<int>(words * kWord));
      draft.nest(t::kIn, LoopNest(at.from, {step(kWord, layers.words), step(at.from_stride, at.count), repeat(kGates)}))
          .nest(t::kOut,
                LoopNest(at.to, {step(kWord, words), step(at.to_stride, at.count), step(LstmScratch::kSlot, kGates)}))
          .nest(t::kParam, LoopNest(weights, {step(kLine, layers.words), repeat(at.count),
                                              step(layers.gate_lines() * kLine, kGates)}))
          .wait(TileCounter::kWideToScaling, {2, 1, 1})
          .signal(t::kSignalAvdata, 2)
          .set(t::kScalingLevel, 2)
          .set(t::kStaticParams)
          .set(t::kInZero, layers.constants.input_zero_point)
          .set(t::kParamZero, layers.constants.weight_zero_point)
          .set(t::kScalePerCell)
          .set(t::kBias, layers.has_biases);
      requantize(draft, 1.0f, layers.constants.clamp, layers.constants.output_zero_point);
      writer_.add(sum_of(draft, layers.words, {repeat(at.count), repeat(kGates)}));
    });
  }
  // Multipliers and biases of one gate after the other, into the halves of scaling memory in turn.
  void load_scaling(const tiled::LstmLayers& layers) {
    const std::int64_t lines = layers.header_lines();
    const std::int64_t rows = (place_.cells_of(0) + kCellsPerScalingRow - 1) / kCellsPerScalingRow;
    constexpr auto kGates = static_cast<std::int64_t>(kLstmGates);
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(place_.tiles())
                    .nest(m::kToNarrowIn, LoopNest(parameters_ + layers.first_line,
                                                   {step(1, lines), step(layers.gate_lines(), kGates)}))
                    .nest(m::kToNarrowOut,
                          LoopNest(chip::kScalingScalesWord, {step(1, rows * kCellsPerScalingRow / 2),
                                                              step(chip::kScalingBiasesWord, lines), repeat(kGates)})
                              .swap(2, kScalingHalf))
                    .set(m::kToScaling)
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kAvdata, {2, -1, 1}, Gate::kWriting)
                    .signal(m::kSignalWideToNarrow, 2));
  }

  const tiled::LstmPlace& place_;
  const std::int32_t scratch_, inputs_, first_line_, parameters_;
};

class InputsWriter : LstmWriter {
 public:
  InputsWriter(Emission& to, const tiled::LstmInputs& work) : LstmWriter(to, work.place), work_(work) {}

  void write() {
    make_constants(work_.numbers.step);
    const tiled::TiledTensor& input = program_.tensor(work_.input);
    restart();
    multiply(work_.layers, {input.address, input.pitch, inputs_, tiled::kLstmInputBytes, work_.steps});
  }

 private:
  const tiled::LstmInputs& work_;
};

class StepWriter : LstmWriter {
 public:
  StepWriter(Emission& to, const tiled::LstmStep& work) : LstmWriter(to, work.place), work_(work) {}

  void write() {
    if (work_.state_before != tiled::kNowhere) take_state();
    restart();
    write_step([] {});
    if (work_.state_after != tiled::kNowhere) give_state();
  }

  // The state as it comes in, spread, to its lines.
  void take_state() {
    restart();
    for_each_size([&](TileMask tiles, std::int32_t words) { spread_state(tiles, words); });
    restart();
    for_each_size([&](TileMask tiles, std::int32_t words) {
      to_lines(tiles, LstmScratch::kState, LstmLines::kState, 2 * std::int64_t{words});
    });
  }
  void give_state() {
    for_each_size([&](TileMask tiles, std::int32_t words) { pack_state(tiles, words); });
  }

  // Behind a fence that clears all counters. `also`: adds work of the tensor unit, behind the last use of h and before
  // the new one is written.
  template <typename Also>
  void write_step(const Also& also) {
    multiply_recurrent();
    const numeric::ChipFunction logistic = numeric::chip_logistic(numeric::kLstmGateScale);
    load_table(writer_, logistic.table, place_.tiles());
    for_each_size([&](TileMask tiles, std::int32_t words) { gates(tiles, words, logistic); });
    const numeric::ChipFunction tanh = numeric::chip_tanh(numeric::kLstmCellGateScale);
    load_table(writer_, tanh.table, place_.tiles());
    for_each_size([&](TileMask tiles, std::int32_t words) { cell_gate(tiles, words, tanh); });
    also();
    restart();
    for_each_size([&](TileMask tiles, std::int32_t words) { products(tiles, words); });
    numeric::ChipFunction fine = numeric::chip_tanh(numeric::kLstmFineScale);
    fine.max = std::min(fine.max, work_.numbers.step.state_limit);
    fine.min = -fine.max;
    load_table(writer_, fine.table, place_.tiles());
    for_each_size([&](TileMask tiles, std::int32_t words) { state(tiles, words, fine); });
    restart();
    for_each_size([&](TileMask tiles, std::int32_t words) { output(tiles, words); });
  }

 private:
  std::int64_t at(std::int32_t offset) const { return std::int64_t{scratch_} + offset; }

  // Words to lines of four, on the way to the tensor unit.
  void to_lines(TileMask tiles, std::int32_t from, std::int32_t which, std::int64_t lines) {
    writer_.add(Draft(Opcode::kNarrowToWide)
                    .tiles(tiles)
                    .nest(m::kToWideIn, LoopNest(at(from) / kWord, {step(1, 4), step(4, lines)}))
                    .nest(m::kToWideOut, LoopNest(first_line_ + which, {step(1, lines)}))
                    .set(m::kToWideLineLevel, 1)
                    .signal(m::kSignalNarrowToWide, 1));
  }
  // All lines so far are there; all passes of the loops wait for that once.
  void wait_for_lines(Draft& draft, TileMask tiles, int loops) const {
    int tile = 0;
    while ((tiles & tiled::mask_of(tile)) == 0) ++tile;
    draft.wait(TileCounter::kNarrowToWide, {loops, writer_.total(TileCounter::kNarrowToWide, tile), 1});
  }

  void spread_state(TileMask tiles, std::int32_t words) {
    Draft draft = operation(tiles, {4, words}, kSpreadCells);
    draft.nest(t::kIn, LoopNest(program_.tensor(work_.state_before).address, {step(2, 4 * words)}))
        .nest(t::kOut, LoopNest(at(LstmScratch::kState), {step(kWord, 8 * words)}))
        .nest(t::kParam, LoopNest(line(LstmLines::kWideSpreader), {step(1, 4), repeat(words)}))
        .set(t::kIn16)
        .set(t::kOut16)
        .set(t::kLanesOff, 6)
        .set(t::kInZero, kWideZero);
    requantize(draft, 1.0f, numeric::kNoChipClamp, kWideZero);
    writer_.add(sum_of(draft, 4, {repeat(words)}));
  }

  // The state as it goes out: elements of the spread form together.
  void pack_state(TileMask tiles, std::int32_t words) {
    Draft draft = operation(tiles, {4, words}, 4);
    draft.nest(t::kIn, LoopNest(at(LstmScratch::kState), {step(6, 2), step(24, 2), step(8 * kWord, words)}))
        .nest(t::kOut, LoopNest(program_.tensor(work_.state_after).address, {step(kWord, 2 * words)}))
        .nest(t::kParam, LoopNest(line(LstmLines::kIdentity), {step(1, 4), repeat(words)}))
        .set(t::kIn16)
        .set(t::kOut16)
        .set(t::kLanesOff, 6);
    requantize(draft, 1.0f, numeric::kNoChipClamp, 0);
    writer_.add(sum_of(draft, 4, {repeat(words)}));
  }

  void multiply_recurrent() {
    const tiled::TiledTensor& hidden = program_.tensor(work_.hidden);
    multiply(work_.layers,
             {hidden.address + std::int64_t{work_.hidden_pixel} * hidden.pitch, 0, at(LstmScratch::kRecurrent), 0, 1});
  }

  // (W x + b) + R h of `gates` gates from `slot` on, through a function.
  Draft argument(TileMask tiles, std::int32_t words, std::int64_t slot, std::int64_t gates, int cells,
                 const numeric::ChipFunction& function) const {
    const std::int64_t of_input = inputs_ + std::int64_t{work_.number} * tiled::kLstmInputBytes;
    const std::int64_t recurrent = at(LstmScratch::kRecurrent);
    const std::int64_t first = std::min(of_input, recurrent) + slot * LstmScratch::kSlot;
    const std::int64_t distance = std::max(of_input, recurrent) - std::min(of_input, recurrent);
    const numeric::ChipLstmArgument& held = function.is_odd ? work_.numbers.tanh : work_.numbers.logistic;
    Draft draft = operation(tiles, {2, words, gates}, cells);
    draft.nest(t::kIn, LoopNest(first, {step(distance, 2), step(kWord, words), step(LstmScratch::kSlot, gates)}))
        .set(t::kInZero, held.zero)
        .set(t::kActivation)
        .set(t::kOddSymmetry, function.is_odd ? 3 : 0);
    sum_of(draft, 2, {repeat(words), repeat(gates)});
    requantize(draft, held.unit, {function.max, function.min}, function.is_odd ? numeric::kLstmCellGateZero : 0);
    return draft;
  }

  void gates(TileMask tiles, std::int32_t words, const numeric::ChipFunction& logistic) {
    constexpr std::int64_t kCount = tiled::kLstmLogisticGates;
    writer_.add(argument(tiles, words, 0, kCount, 4, logistic)
                    .nest(t::kOut, LoopNest(at(LstmScratch::kGates),
                                            {step(kWord, 1), step(kWord, words), step(LstmScratch::kSlot, kCount)}))
                    .nest(t::kParam, LoopNest(line(LstmLines::kIdentity), {repeat(2), repeat(words), repeat(kCount)})));
  }

  void cell_gate(TileMask tiles, std::int32_t words, const numeric::ChipFunction& tanh) {
    writer_.add(argument(tiles, words, tiled::kLstmLogisticGates, 1, kSpreadCells, tanh)
                    .nest(t::kOut, LoopNest(at(LstmScratch::kCellGate), {step(kWord, 4 * words)}))
                    .nest(t::kParam, LoopNest(line(LstmLines::kSpreader), {repeat(2), repeat(words), repeat(1)})));
  }

  // Of a gate with 16-bit parameters.
  Draft wide_product(TileMask tiles, std::int32_t words, std::int32_t gate, std::int32_t lines) const {
    Draft draft = operation(tiles, {2, words}, 4);
    draft.nest(t::kIn, LoopNest(at(LstmScratch::kGates + gate * LstmScratch::kSlot), {step(2, 2 * words)}))
        .nest(t::kParam, LoopNest(line(lines), {step(kLine, 2 * words)}))
        .set(t::kParam16)
        .set(t::kParamZero, kWideZero);
    sum_of(draft, 2, {repeat(words)});
    return draft;
  }

  void products(TileMask tiles, std::int32_t words) {
    constexpr std::int32_t kInputGate = 0, kForgetGate = 1;
    const numeric::ChipLstmStep& n = work_.numbers.step;
    to_lines(tiles, LstmScratch::kCellGate, LstmLines::kCellGate, words);
    Draft kept = wide_product(tiles, words, kForgetGate, LstmLines::kState);
    kept.nest(t::kOut, LoopNest(at(LstmScratch::kKept), {step(kWord, 2 * words)})).set(t::kOut16);
    writer_.add(requantize(kept, n.kept_multiplier, n.kept_clamp, kWideZero));
    Draft update = operation(tiles, {words}, 4);
    update.nest(t::kIn, LoopNest(at(LstmScratch::kGates + kInputGate * LstmScratch::kSlot), {step(kWord, words)}))
        .nest(t::kOut, LoopNest(at(LstmScratch::kUpdate), {step(kWord, 2 * words)}))
        .nest(t::kParam, LoopNest(line(LstmLines::kCellGate), {step(kLine, words)}))
        .nest(t::kPsum, LoopNest(0, {repeat(words)}))
        .set(t::kPsumGroup)
        .set(t::kOut16)
        .set(t::kParamZero, numeric::kLstmCellGateZero);
    wait_for_lines(update, tiles, 1);
    writer_.add(requantize(update, n.update_multiplier, n.update_clamp, kWideZero));
  }

  Draft state_sum(TileMask tiles, std::int32_t words, std::int32_t to) const {
    Draft draft = operation(tiles, {4, 2, words}, kSpreadCells);
    draft
        .nest(t::kIn, LoopNest(at(LstmScratch::kKept),
                               {step(2, 4), step(LstmScratch::kUpdate - LstmScratch::kKept, 2), step(8, words)}))
        .nest(t::kOut, LoopNest(at(to), {step(kWord, 8 * words)}))
        .nest(t::kParam, LoopNest(line(LstmLines::kStateWeights), {step(2, 8), repeat(words)}))
        .set(t::kIn16)
        .set(t::kParam16)
        .set(t::kOut16)
        .set(t::kInZero, kWideZero);
    sum_of(draft, 8, {repeat(words)});
    return draft;
  }

  void state(TileMask tiles, std::int32_t words, const numeric::ChipFunction& tanh) {
    const numeric::ChipLstmStep& n = work_.numbers.step;
    Draft kept = state_sum(tiles, words, LstmScratch::kState);
    writer_.add(requantize(kept, n.state_multiplier, n.state_clamp, kWideZero));
    Draft through = state_sum(tiles, words, LstmScratch::kTanh);
    through.set(t::kActivation).set(t::kOddSymmetry, 3);
    writer_.add(requantize(through, n.state_unit, {tanh.max, tanh.min}, kWideZero));
  }

  void output(TileMask tiles, std::int32_t words) {
    constexpr std::int32_t kOutputGate = 2;  // in the order of kLstmGateOrder
    const tiled::TiledTensor& output = program_.tensor(work_.output);
    // tanh(c') and, for the next step, c' itself.
    static_assert(LstmLines::kTanh - LstmLines::kState == chip::kCells / 2);
    constexpr std::int64_t kApart = (LstmScratch::kTanh - LstmScratch::kState) / kWord;
    const std::int64_t lines = 2 * std::int64_t{words};
    writer_.add(Draft(Opcode::kNarrowToWide)
                    .tiles(tiles)
                    .nest(m::kToWideIn,
                          LoopNest(at(LstmScratch::kState) / kWord, {step(1, 4), step(4, lines), step(kApart, 2)}))
                    .nest(m::kToWideOut, LoopNest(first_line_ + LstmLines::kState,
                                                  {step(1, lines), step(LstmLines::kTanh - LstmLines::kState, 2)}))
                    .set(m::kToWideLineLevel, 1)
                    .signal(m::kSignalNarrowToWide, 2));
    Draft draft = wide_product(tiles, words, kOutputGate, LstmLines::kTanh);
    draft.nest(t::kOut,
               LoopNest(output.address + std::int64_t{work_.output_pixel} * output.pitch, {step(kWord, words)}));
    wait_for_lines(draft, tiles, 2);
    requantize(draft, work_.numbers.step.output_multiplier, work_.numbers.step.output_clamp, work_.numbers.hidden_zero);
    writer_.add(draft);
  }

  const tiled::LstmStep& work_;
};

// Passes find the same addresses: x moves down by a pixel in each, and so do the outputs of the loop's steps, the last
// of which is the one that is read and written. All of them are h from before the loop at first.
class LoopWriter : LstmWriter {
 public:
  LoopWriter(Emission& to, const tiled::LstmLoop& loop)
      : LstmWriter(to, loop.place),
        loop_(loop),
        step_{.place = loop.place,
              .layers = loop.recurrent,
              .hidden = loop.output,
              .hidden_pixel = loop.first_step + loop.steps - 1,
              .output = loop.own == tiled::kNowhere ? loop.output : loop.own,
              .output_pixel = loop.own == tiled::kNowhere ? loop.first_step + loop.steps - 1 : 0,
              .state_before = loop.state_before,
              .state_after = loop.state_after,
              .numbers = loop.numbers},
        steps_(to, step_),
        moving_(to.program.address_of(loop.moving_input)),
        input_(to.program.tensor(loop.input)),
        output_(to.program.tensor(loop.output)) {}

  // Nothing of what comes before the loop is on its way over the ring when turns are cleared: that waits for all.
  void write() {
    if (loop_.is_first) make_constants(loop_.numbers.step);
    if (loop_.state_before != tiled::kNowhere) steps_.take_state();
    restart();
    const tiled::TiledTensor& hidden = program_.tensor(loop_.hidden);
    const std::int64_t outputs = output_.address + std::int64_t{loop_.first_step} * output_.pitch;
    copy({input_.address + std::int64_t{loop_.first_step} * input_.pitch, input_.pitch, moving_,
          loop_.of_input.words * kWord, loop_.steps},
         loop_.of_input.words);
    copy({hidden.address + std::int64_t{loop_.hidden_pixel} * hidden.pitch, 0, outputs, output_.pitch, loop_.steps},
         loop_.recurrent.words);
    const bool gathers = loop_.own != tiled::kNowhere;
    if (gathers) clear_ring_turns(writer_);
    writer_.begin_loop(static_cast<std::uint32_t>(loop_.steps));
    restart();
    multiply(loop_.of_input, {moving_, 0, inputs_, 0, 1});
    restart();
    steps_.write_step([&] {
      move_down(moving_, loop_.of_input.words * kWord, loop_.of_input.words);
      move_down(outputs, output_.pitch, loop_.recurrent.words);
    });
    if (gathers) {
      emit_step(to_, loop_.gather);
      clear_ring_turns(writer_);
    }
    writer_.end_loop();
    if (loop_.state_after != tiled::kNowhere) steps_.give_state();
  }

 private:
  // Every pixel of the loop's steps but the first to the place of the one before. A pixel is read before its place is
  // written, by the same instruction.
  void move_down(std::int64_t first, std::int64_t pitch, std::int64_t words) {
    copy({first + pitch, pitch, first, pitch, loop_.steps - 1}, words);
  }
  void copy(const Vectors& at, std::int64_t words) {
    Draft draft = operation(place_.tiles(), {words, at.count}, 4);
    draft.nest(t::kIn, LoopNest(at.from, {step(kWord, words), step(at.from_stride, at.count)}))
        .nest(t::kOut, LoopNest(at.to, {step(kWord, words), step(at.to_stride, at.count)}))
        .nest(t::kParam, LoopNest(line(LstmLines::kIdentity), {repeat(words), repeat(at.count)}))
        .nest(t::kPsum, LoopNest(0, {repeat(words), repeat(at.count)}))
        .set(t::kPsumGroup);
    writer_.add(requantize(draft, 1.0f, numeric::kNoChipClamp, 0));
  }

  const tiled::LstmLoop& loop_;
  const tiled::LstmStep step_;
  StepWriter steps_;
  const std::int64_t moving_;
  const tiled::TiledTensor& input_;
  const tiled::TiledTensor& output_;
};

}  // namespace

void emit_step(Emission& to, const tiled::LstmInputs& inputs) { InputsWriter(to, inputs).write(); }
void emit_step(Emission& to, const tiled::LstmStep& step) { StepWriter(to, step).write(); }
void emit_step(Emission& to, const tiled::LstmLoop& loop) { LoopWriter(to, loop).write(); }

}  // namespace reef::emit

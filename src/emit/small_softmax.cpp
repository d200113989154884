// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of four elements in tile 0, as Google's newest compiler does it: the steps of spread_softmax.cpp without
// those that bring data from tile to tile. It is here so that programs can be compared with Google's; tiled::Softmax
// does the same with fewer instructions.
//
// How it is known: row for row on one network (docs/hardware/google_heads.md#softmax).
#include <limits>

#include "emit/constant_lines.h"
#include "emit/regions.h"
#include "emit/softmax_parts.h"
#include "isa/movers.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

using SmallLines = tiled::SmallSoftmaxLines;
namespace m = isa::movers;
namespace t = isa::tensor_op;

class SmallSoftmaxWriter : SoftmaxParts {
 public:
  SmallSoftmaxWriter(Emission& to, const tiled::SmallSoftmax& step)
      : SoftmaxParts(to, to.program.tensor(step.input)),
        step_(step),
        x_(own_region(input_, 0).first_byte),
        output_(own_region(to.program.tensor(step.output), 0).first_byte),
        first_(to.program.address_of(step.words)),
        lines_(to.program.line_of(step.lines)),
        identity_(to.program.line_of(step.identity.line)) {}

  void write() {
    restart();
    make_identity(writer_, program_, step_.identity);
    maximum_of_word(x_ / kWord, first_, line(SmallLines::kPair));
    restart(3);
    fill(Opcode::kMeshNorth, tiled::kAllTiles, word(1), {{1, 4}}, 1);
    filled_words_to_line(word(1), line(SmallLines::kReplicate));
    replicate_maximum();
    restart();
    differences({{1, kTile}}, {x_, first_ + kMaximum, kWord, first_ + kDifference, first_ + kUnused, word(0),
                               line(SmallLines::kPair), line(SmallLines::kNegated)});
    restart(3);
    numerators();
    restart(2);
    root();
    restart(3);
    square_of_root(first_ + kRoot, first_ + 2 * kRoot, line(SmallLines::kReduced), identity_);
    restart(3);
    product_of_all();
    restart_only(TileCounter::kNarrowToWide);
    restart_only(TileCounter::kParameters);
    restart(2);
  }

 private:
  // Bytes from the first.
  static constexpr std::int64_t kRoot = 8, kMaximum = 32, kDifference = 36, kUnused = 48;
  static constexpr TileMask kTile = tiled::mask_of(0);
  static constexpr float kEverything = std::numeric_limits<float>::infinity();

  std::int64_t word(std::int64_t index) const { return first_ / kWord + index; }
  std::int64_t line(std::int32_t which) const { return lines_ + which; }

  void replicate_maximum() {
    Draft draft = operation(Opcode::kMultiplyAdd, kTile, {1}, How::kBytes);
    requantize(draft, 1.0f, kEverything, -kEverything);
    writer_.add(
        draft.nest(t::kIn, nest(first_, {{kWord, 1}, {0, 1}, {kWord, 1}, {0, 1}, {kWord, 1}, {0, 1}, {kWord, 1}}, 0x55))
            .nest(t::kOut, nest(first_ + kMaximum, {{kWord, 1}, {kWord, 1}, {kWord, 1}, {kWord, 1}}, 15))
            .nest(t::kParam, nest(line(SmallLines::kReplicate) * kQuarters, {{kQuarters, 1}}, 1))
            .nest(t::kPsum, nest(0, {{1, 1}}, 0))
            .set(t::kPsumGroupLevel, 1)
            .set(t::kPsumGroup2));
  }

  void numerators() {
    load_table(writer_, numeric::chip_exp().table, kTile);
    Draft draft = operation(Opcode::kMultiplyAdd, kTile, {1}, How::kBytes);
    requantize(draft, step_.scale, 0, kExpLimit);
    writer_.add(draft.nest(t::kIn, nest(first_ + kDifference, {{kWord, 1}, {kWord, 1}, {kWord, 1}}, 7))
                    .nest(t::kOut, nest(first_, {{kWord, 2}, {8, 1}, {8, 1}}, 7))
                    .nest(t::kParam, nest(identity_ * kQuarters, {{1, 1}}, 0))
                    .nest(t::kPsum, nest(0, {{1, 1}}, 0))
                    .set(t::kInZero, 255)
                    .set(t::kActivation)
                    .set(t::kOut16)
                    .wait(TileCounter::kNarrowToWide, {1, 0, 1})
                    .signal(t::kSignalAvdata, 2)
                    .signal(t::kSignalParameters, 1));
  }

  void root() {
    load_table(writer_, numeric::chip_root_table(), kTile);
    writer_.add(Draft(Opcode::kNarrowToWide)
                    .tiles(kTile)
                    .nest(m::kToWideIn, nest(word(0), {{1, 2}}, 1))
                    .nest(m::kToWideOut, nest(line(SmallLines::kReduced), {{0, 2}}, 0).swap(0, 1))
                    .wait(TileCounter::kParameters, {0, -1, 1}, Gate::kWriting)
                    .signal(m::kSignalNarrowToWide, 0));
    Draft sum = operation(Opcode::kSum, kTile, {2}, How::kWideParameters);
    requantize(sum, 1.0f / numeric::kChipExpOne, kEverything, -kEverything);
    writer_.add(sum.nest(t::kOut, nest(first_ + kRoot, {{kWord, 2}, {8, 1}, {8, 1}, {8, 1}}, 15))
                    .nest(t::kParam, nest(line(SmallLines::kReduced) * kQuarters, {{0, 2}}, 0).swap(0, kQuarters))
                    .nest(t::kPsum, nest(0, {{0, 2}}, 0))
                    .set(t::kPsumGroup)
                    .set(t::kPsumGroupLevel, 1)
                    .set(t::kActivation)
                    .set(t::kReciprocalRoot)
                    .set(t::kOut16)
                    .set(t::kReduceDims, 1)
                    .wait(TileCounter::kNarrowToWide, {0, 1, 1})
                    .signal(t::kSignalParameters, 0));
  }

  void product_of_all() {
    fill(Opcode::kMeshNorth, tiled::kAllTiles, word(4), {{2, 2}}, 1, false);
    fill(Opcode::kMeshNorth, tiled::kAllTiles, word(5), {{2, 2}}, 0x100);
    filled_words_to_line(word(4), line(SmallLines::kReplicate));
    copy({kTile, 2, first_ + kRoot, 8, first_ + kMaximum, 8, line(SmallLines::kReplicate), true});
    restart();
    writer_.add(Draft(Opcode::kNarrowToWide)
                    .tiles(kTile)
                    .nest(m::kToWideIn, nest(word(0), {{2, 2}, {1, 2}, {4, 1}}, 7))
                    .nest(m::kToWideOut, nest(line(SmallLines::kPair), {{1, 1}}, 0).swap(1, 1))
                    .set(m::kToWideIn.clip_limit, 1)
                    .set(m::kToWideIn.clip_dim, 2)
                    .set(m::kToWideLineLevel, 2)
                    .set(m::kTranspose)
                    .set(m::kTransposeHalves)
                    .wait(TileCounter::kParameters, {1, -1, 1}, Gate::kWriting)
                    .signal(m::kSignalNarrowToWide, 1));
    writer_.add(product(kTile, {1})
                    .nest(t::kIn, nest(first_ + kMaximum, {{kWord, 1}, {0, 1}, {8, 1}, {8, 1}, {8, 1}}, 29))
                    .nest(t::kOut, nest(output_, {{kWord, 1}, {kWord, 1}, {kWord, 1}, {kWord, 1}}, 15))
                    .nest(t::kParam, nest(line(SmallLines::kPair) * kQuarters, {{2, 1}}, 1).swap(1, kQuarters))
                    .nest(t::kPsum, nest(0, {{1, 1}}, 0))
                    .set(t::kPsumGroupLevel, 1));
  }

  const tiled::SmallSoftmax& step_;
  const std::int64_t x_, output_, first_;  // bytes
  const std::int64_t lines_, identity_;
};

}  // namespace

void emit_step(Emission& to, const tiled::SmallSoftmax& step) { SmallSoftmaxWriter(to, step).write(); }

}  // namespace reef::emit

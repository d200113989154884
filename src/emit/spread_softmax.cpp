// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of a row that is spread over the tiles, 64 elements each, as Google's newest compiler does it.
//
//   1  elements behind the row's end become 0; everything to tile 0, the maximum, to all tiles
//   2  differences to the maximum; their exponentials, numerators of 16 bits
//   3  all numerators to all tiles (each to each), which only tile 0 has a use for. Where their number is odd, the
//      last word, with one numerator too many, goes another way: over the mesh to tile 0, where that one is taken away,
//      then to all tiles, then over the mesh to the last tile once more
//   4  tile 0: the sum, its reciprocal (by the square root's); to all tiles
//   5  products of numerators and reciprocal
//
// This is slow and long: tiled::Softmax does the same in one tile. It is here so that programs can be compared with
// Google's; numbers and places that look arbitrary are its choices. Waits are counters of two units at each end of two
// lines, as in softmax.cpp; all else is fenced off.
//
// How it is known: row for row on three networks with 1001 classes (docs/hardware/google_heads.md#softmax). Other
// numbers of elements are our generalization, to rows that are as that one: 4 k + 1 elements, the last in neither the
// first row nor the first column of tiles.
#include <limits>

#include "emit/constant_lines.h"
#include "emit/registers.h"
#include "emit/ring_copy_writer.h"
#include "emit/softmax_parts.h"
#include "isa/fence.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "numeric/chip_requantize.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

using SpreadLines = tiled::SpreadSoftmaxLines;
namespace m = isa::movers;
namespace t = isa::tensor_op;

class SpreadSoftmaxWriter : SoftmaxParts {
 public:
  SpreadSoftmaxWriter(Emission& to, const tiled::SpreadSoftmax& step)
      : SoftmaxParts(to, to.program.tensor(step.input)),
        step_(step),
        x_(input_.address),
        output_(to.program.tensor(step.output).address),
        row_(to.program.address_of(step.row)),
        differences_(to.program.address_of(step.differences)),
        lines_(to.program.line_of(step.lines)),
        identity_(to.program.line_of(step.identity.line)),
        words_(step.words()),
        numerators_(step.numerator_words()),
        tiles_(step.tiles()),
        all_(static_cast<TileMask>((1u << step.tiles()) - 1)) {
    for_each_class(
        all_, [&](int tile) { return step_.words_of(tile); },
        [&](TileMask mask, std::int64_t words) {
          classes_.push_back({words, mask});
        });
    last_numerator_ = row_word(tiled::SpreadSoftmax::kNumerators / kWord + numerators_ - 1);
    relay_ = last_numerator_ + 1;
    inverse_ = last_numerator_ + 2;
    received_ = last_numerator_ + 9;
  }

  void write() {
    // Behind an infeed, with no layer in between, the infeed's pop still sends on the ring that the row is copied over.
    if (to_.writer.pop_may_be_sending()) to_.writer.barrier();
    find_maximum();
    find_numerators();
    exchange_numerators();
    exchange_last_numerator();
    find_inverse();
    multiply();
  }

 private:
  std::int64_t row_word(std::int64_t word) const { return row_ / kWord + word; }
  std::int64_t line(std::int32_t which) const { return lines_ + which; }
  std::int64_t row_bytes() const { return kWord * words_; }
  std::int64_t maximum_byte() const { return row_ + row_bytes(); }

  // ---- Copies over the ring ----

  RingCopyWriter copies(std::int32_t at) {
    RingCopyWriter writer(to_, static_cast<std::int32_t>(line(at)), true);
    writer.start();
    return writer;
  }
  tiled::RingCopy row_copy(int from, int to, std::int64_t word, std::int64_t words) const {
    const auto offset = static_cast<std::int32_t>(kWord * word - row_);
    const tiled::WordWalk walk{step_.row, offset, {{1, static_cast<std::int32_t>(words)}}};
    return {from, tiled::mask_of(to), walk, walk};
  }
  void broadcast(std::int64_t word, std::int64_t words, std::int32_t at) {
    fence();
    RingCopyWriter ring = copies(at);
    for (int tile = 1; tile < tiles_; ++tile) ring.write(row_copy(0, tile, word, words));
    end_copies();
  }
  // All has been sent and stored: a barrier without the units that only receive.
  void end_copies() {
    namespace f = isa::scalar_fence;
    constexpr std::uint32_t kSendingUnits = 0x3c6;
    writer_.tile_fence(kSendingUnits, 0, true);
    writer_.add(Draft(Opcode::kScalarFence)
                    .set(f::kTiles, tiled::kAllTiles)
                    .set(f::kAwaitNotify)
                    .set(f::kNotifyTiles, tiled::kAllTiles));
  }

  // ---- Words with a constant line each ----

  std::int32_t first_line(std::int32_t chunk, int tile) const { return program_.chunk(chunk).at[reef::at(tile)].line; }
  void load_constants(std::int32_t chunk, std::int32_t to) {
    using Key = std::pair<std::int32_t, std::int32_t>;
    for_each_class(
        all_, [&](int tile) { return Key(step_.words_of(tile), first_line(chunk, tile)); },
        [&](TileMask mask, const Key& key) {
          writer_.add(Draft(Opcode::kWideToNarrow)
                          .tiles(mask)
                          .nest(m::kToNarrowIn, nest(key.second, {{1, 1}, {1, key.first}}, 3))
                          .nest(m::kToNarrowOut,
                                nest(to, {{1, 2}, {chip::kScalingBiasesWord, 1}, {0, key.first}}, 3).swap(2, 32))
                          .set(m::kToScaling)
                          .set(m::kToNarrowLineLevel, 1)
                          .wait(TileCounter::kAvdata, {2, total(TileCounter::kAvdata) - 1, 1}, Gate::kWriting)
                          .signal(m::kSignalWideToNarrow, 2));
        });
  }

  struct WithConstants {
    TileMask tiles = 0;
    std::int64_t words = 0;
    std::int64_t from = 0, to = 0, to_size = 0;  // bytes
    std::int32_t in_zero = 0, out_zero = 0;
    float max = 0, min = 0;
    bool numerators = false;  // scales, a table and 16 bits; else biases
  };
  void with_constants(const WithConstants& what) {
    const std::int64_t n = what.words, out_words = what.numerators ? 2 : 1;
    Draft draft = operation(Opcode::kMultiplyAdd, what.tiles, {1, 2, n}, How::kBytes);
    requantize(draft, 1.0f, what.max, what.min)
        .nest(t::kIn, nest(what.from, {{kWord, 1}, {0, 2}, {kWord * n, 1}, {kWord, n}}, 13))
        .nest(t::kOut, nest(what.to, {{kWord, out_words}, {what.to_size, 1}, {0, 2}, {kWord * out_words, n}}, 11))
        .nest(t::kParam, nest(identity_ * kQuarters, {{0, 2}, {0, n}}, 0).swap(1, 0))
        .nest(t::kPsum, nest(0, {{0, 2}, {0, n}}, 0))
        .set(t::kPsumGroup)
        .set(t::kInZero, what.in_zero)
        .set(t::kOutZero, what.out_zero)
        .set(t::kScalingLevel, 2)
        .wait(TileCounter::kWideToScaling, {2, 1, 1})
        .wait(TileCounter::kNarrowToWide, {3, total(TileCounter::kNarrowToWide), 1})
        .signal(t::kSignalAvdata, 3)
        .signal(t::kSignalParameters, 1);
    if (what.numerators) {
      draft.set(t::kActivation).set(t::kOut16).set(t::kScalePerCell);
    } else {
      draft.set(t::kBias);
    }
    writer_.add(draft);
  }

  // ---- 1 ----

  void find_maximum() {
    restart();
    make_identity(writer_, program_, step_.identity);
    load_constants(step_.biases, chip::kScalingBiasesWord);
    const std::int32_t zero = input_.zero_point;
    const numeric::ChipClamp clamp = numeric::chip_clamp(input_.scale, zero, numeric::ChipActivation::kNone);
    for (int tile = 0; tile < tiles_; ++tile) {
      with_constants({tiled::mask_of(tile), step_.words_of(tile), x_,
                      row_ + tiled::SpreadSoftmax::kElementsPerTile * tile, row_bytes(), zero, zero, clamp.max,
                      clamp.min});
    }
    fence();
    RingCopyWriter ring = copies(SpreadLines::kGather);
    for (int tile = 1; tile < tiles_; ++tile) {
      ring.write(row_copy(tile, 0, row_word(tiled::SpreadSoftmax::kWordsPerTile * tile), step_.words_of(tile)));
    }
    end_copies();
    restart(2);
    maximum_of_row();
    restart();
    broadcast(row_word(words_), 1, SpreadLines::kBroadcast);
    restart(2);
    fill(Opcode::kMeshNorth, tiled::kAllTiles, row_word(words_ + 1), {{1, 4}}, 1);
    filled_words_to_line(row_word(words_ + 1), line(SpreadLines::kReplicate));
    copy({all_, words_, maximum_byte(), kWord, row_, row_bytes(), line(SpreadLines::kReplicate), true});
    restart();
  }

  // Groups of four lines in turn, of a word each; the last group may be shorter.
  struct Groups {
    std::int64_t count = 0, last = 0;
    explicit Groups(std::int64_t words) : count((words + 3) / 4), last(words - 4 * (count - 1)) {}
  };
  Draft words_in_groups(std::int64_t word, std::int64_t words) {
    const Groups groups(words);
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tiled::mask_of(0))
        .nest(m::kToWideIn, nest(word, {{1, words}}, 1))
        .nest(m::kToWideOut,
              nest(line(SpreadLines::kReduced), {{1, 4}, {0, groups.count}}, 1).swap(1, 4).clip(1, groups.last))
        .wait(TileCounter::kParameters, {1, total(TileCounter::kParameters) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 1);
    return draft;
  }
  Draft& over_groups(Draft& draft, std::int64_t words) {
    const Groups groups(words);
    draft
        .nest(t::kParam, nest(line(SpreadLines::kReduced) * kQuarters, {{kQuarters, 4}, {0, groups.count}}, 1)
                             .swap(1, 4 * kQuarters)
                             .clip(1, groups.last))
        .nest(t::kPsum, nest(0, {{0, words}}, 0))
        .wait(TileCounter::kNarrowToWide, {1, 1, 1});
    if (groups.last < 4) draft.set(t::kLoops.clip_limit, groups.last - 1).set(t::kLoops.clip_dim, 1);
    return draft;
  }

  void maximum_of_row() {
    writer_.add(words_in_groups(row_word(0), words_).set(m::kTranspose));
    Draft four = maximum({4, Groups(words_).count});
    over_groups(four, words_);
    writer_.add(four.nest(t::kOut, nest(maximum_byte() + kWord, {{kWord, 1}, {kWord, 1}, {kWord, 1}, {kWord, 1}}, 15)));
    writer_.tile_fence(unit_mask(isa::Unit::kTensor), 0);
    maximum_of_word(row_word(words_ + 1), maximum_byte(), line(SpreadLines::kReduced));
  }

  // ---- 2 ----

  void find_numerators() {
    differences(classes_, {x_, row_, row_bytes(), differences_, differences_ + tiled::kUnusedResult,
                           (differences_ + tiled::kDifferenceWords) / kWord, line(SpreadLines::kPair),
                           line(SpreadLines::kNegated)});
    restart(3);
    load_constants(step_.biases_again, chip::kScalingBiasesWord);
    for (const auto& [words, mask] : classes_) {
      with_constants({mask, words, differences_, differences_, kWord * words, 255, 255, 0, -255.0f});
    }
    restart(2);
    load_table(writer_, numeric::chip_exp().table, all_);
    load_constants(step_.scales, chip::kScalingScalesWord);
    for (const auto& [words, mask] : classes_) {
      with_constants({mask, words, differences_, row_, 2 * kWord * words, 255, 0, 0, kExpLimit, true});
    }
    restart();
    fence();
  }

  // ---- 3 ----

  bool is_odd() const { return step_.elements % 2 != 0; }
  // Words that a tile gives to all; the last one goes its own way.
  std::int64_t given_by(int tile) const {
    constexpr std::int64_t kWhole = 2 * tiled::SpreadSoftmax::kWordsPerTile;
    return tile + 1 < tiles_ ? kWhole : numerators_ - kWhole * (tiles_ - 1) - (is_odd() ? 1 : 0);
  }
  static std::int64_t numerator_byte(int tile) { return tiled::SpreadSoftmax::kNumerators * (1 + std::int64_t{tile}); }

  void exchange_numerators() {
    for (int tile = 0; tile < tiles_; ++tile) {
      copy({tiled::mask_of(tile), given_by(tile), row_, 2 * kWord * step_.words_of(tile), row_ + numerator_byte(tile),
            kWord * numerators_, identity_, false});
    }
    restart();
    fence();
    RingCopyWriter ring = copies(SpreadLines::kAllToAll);
    for (int to = 0; to < tiles_; ++to) {
      for (int from = 0; from < tiles_; ++from) {
        if (from != to) ring.write(row_copy(from, to, row_word(numerator_byte(from) / kWord), given_by(from)));
      }
    }
    end_copies();
  }

  // One word along a path with one corner, through four words in turn at each tile between.
  struct Corner {
    std::vector<int> before, after;  // tiles up to the corner, and behind it
    Opcode first, second;
  };
  void pass_word(const Corner& path, std::int64_t from, std::int64_t to) {
    namespace mesh = isa::mesh;
    const LoopNest through = nest(relay_, {{1, 1}}, 1).swap(1, 4);
    const auto arrived = [&](Opcode opcode) { return std::pair(mesh::in_counter(opcode), WaitFor{1, 1, 1}); };
    const auto is_free = [&](Opcode opcode) { return std::pair(mesh::out_counter(opcode), WaitFor{1, -1, 1}); };
    const auto relay = [&](Opcode opcode, int tile) {
      writer_.add(Draft(opcode)
                      .tiles(tiled::mask_of(tile))
                      .nest(mesh::kIn, through)
                      .nest(mesh::kOut, through)
                      .wait(arrived(opcode).first, arrived(opcode).second)
                      .wait(is_free(opcode).first, is_free(opcode).second, Gate::kWriting)
                      .signal(mesh::producers(opcode)[0], 1)
                      .signal(mesh::producers(opcode)[1], 1));
    };
    const LoopNest source = nest(from, {{1, 1}}, 0), target = nest(to, {{1, 1}}, 0);
    writer_.add(Draft(path.first).tiles(tiled::mask_of(path.before.front())).nest(mesh::kIn, source));
    for (std::size_t i = 1; i + 1 < path.before.size(); ++i) relay(path.first, path.before[i]);
    const TileMask corner = tiled::mask_of(path.before.back());
    writer_.add(Draft(path.first)
                    .tiles(corner)
                    .nest(mesh::kOut, through)
                    .wait(is_free(path.second).first, is_free(path.second).second, Gate::kWriting)
                    .signal(mesh::producers(path.first)[1], 1));
    writer_.add(Draft(path.second)
                    .tiles(corner)
                    .nest(mesh::kIn, through)
                    .wait(arrived(path.first).first, arrived(path.first).second)
                    .signal(mesh::producers(path.second)[0], 1));
    for (std::size_t i = 0; i + 1 < path.after.size(); ++i) relay(path.second, path.after[i]);
    writer_.add(Draft(path.second).tiles(tiled::mask_of(path.after.back())).nest(mesh::kOut, target));
    constexpr std::uint32_t kMeshCounters = 0x7f8, kMeshUnits = 0x3c0;
    writer_.tile_fence(kMeshUnits, kMeshCounters);
  }

  void exchange_last_numerator() {
    const int last = tiles_ - 1, row = chip::tile_row(last), column = chip::tile_column(last);
    Corner up{{}, {}, Opcode::kMeshNorth, Opcode::kMeshWest}, down{{}, {}, Opcode::kMeshSouth, Opcode::kMeshEast};
    for (int k = row; k >= 0; --k) up.before.push_back(chip::kTileColumns * k + column);
    for (int k = column - 1; k >= 0; --k) up.after.push_back(k);
    for (int k = 0; k <= row; ++k) down.before.push_back(chip::kTileColumns * k);
    for (int k = 1; k <= column; ++k) down.after.push_back(chip::kTileColumns * row + k);
    fence();
    fence();
    pass_word(up, row_word(given_by(last)), received_);
    for (int i = 0; i < 2; ++i) {
      fence();
      restart();
    }
    clear_last_half();
    broadcast(last_numerator_, 1, SpreadLines::kGather);
    restart(2);
    restart_ring();
    fence();
    fence();
    pass_word(down, last_numerator_, last_numerator_);
    fence();
    restart(2);
  }
  void clear_last_half() {
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tiled::mask_of(0))
                    .nest(m::kToNarrowIn, nest(first_line(step_.last_numerator, 0), {{1, 1}}, 1))
                    .nest(m::kToNarrowOut,
                          nest(chip::kScalingScalesWord, {{1, 1}, {chip::kScalingBiasesWord, 1}}, 3).swap(2, 32))
                    .set(m::kToScaling)
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kAvdata, {2, -1, 1}, Gate::kWriting)
                    .signal(m::kSignalWideToNarrow, 2));
    Draft draft = operation(Opcode::kMultiplyAdd, tiled::mask_of(0), {1}, How::kWideInput, 2);
    requantize(draft, 1.0f, numeric::kChipExpOne, 0);
    writer_.add(draft.nest(t::kIn, nest(kWord * received_, {{kWord, 1}, {kWord, 1}, {kWord, 1}}, 7))
                    .nest(t::kOut, nest(kWord * last_numerator_, {{kWord, 1}, {kWord * numerators_, 1}, {kWord, 1}}, 7))
                    .nest(t::kParam, nest(identity_ * kQuarters, {{1, 1}}, 0))
                    .nest(t::kPsum, nest(0, {{1, 1}}, 0))
                    .set(t::kOut16)
                    .set(t::kScalePerCell)
                    .set(t::kScalingLevel, 1)
                    .wait(TileCounter::kWideToScaling, {1, 1, 1})
                    .wait(TileCounter::kNarrowToWide, {2, 0, 1})
                    .signal(t::kSignalAvdata, 2)
                    .signal(t::kSignalParameters, 1));
  }
  // Turns on the ring are counted from 0 again.
  void restart_ring() {
    namespace f = isa::scalar_fence;
    Draft turns(Opcode::kScalarFence);
    turns.set(f::kTiles, tiled::kAllTiles).set(f::kDrain, kScalarMovers);
    std::int64_t reset = 0;
    std::uint32_t tile_counters = 0;
    for (const auto& [scalar, tile] : {std::pair(ScalarCounter::kRingProducerA, TileCounter::kRingProducerA),
                                       std::pair(ScalarCounter::kRingProducerB, TileCounter::kRingProducerB)}) {
      const std::int64_t count = writer_.total(scalar);
      if (count == 0) continue;
      const int index = static_cast<int>(scalar);
      reset |= std::int64_t{1} << index;
      tile_counters |= counter_mask(tile);
      turns.set(f::threshold(index), wrapped_total(count)).set(f::compare(index));
    }
    writer_.add(turns.set(f::kReset, reset));
    writer_.barrier(false, tile_counters);
  }

  // ---- 4 ----

  void find_inverse() {
    constexpr float kEverything = std::numeric_limits<float>::infinity();
    constexpr std::int64_t kFirst = tiled::SpreadSoftmax::kNumerators;
    load_table(writer_, numeric::chip_root_table(), tiled::mask_of(0));
    writer_.add(words_in_groups(row_word(kFirst / kWord), numerators_));
    Draft sum = operation(Opcode::kSum, tiled::mask_of(0), {4, Groups(numerators_).count}, How::kWideParameters);
    requantize(sum, 1.0f / numeric::kChipExpOne, kEverything, -kEverything)
        .nest(t::kOut, nest(kWord * inverse_, {{kWord, 2}, {8, 1}, {8, 1}, {8, 1}}, 15))
        .set(t::kPsumGroup)
        .set(t::kPsumGroupLevel, 1)
        .set(t::kActivation)
        .set(t::kReciprocalRoot)
        .set(t::kOut16)
        .set(t::kScalingLevel, 1)
        .set(t::kReduceDims, 3)
        .signal(t::kSignalParameters, 1);
    writer_.add(over_groups(sum, numerators_));
    restart(3);
    square_of_root(kWord * inverse_, row_ + kFirst, line(SpreadLines::kReduced), identity_);
    restart();
    broadcast(inverse_, 2, SpreadLines::kBroadcast);
    restart(2);
  }

  // ---- 5 ----

  void multiply() {
    const std::int64_t all_words = 2 * words_;
    fill(Opcode::kMeshNorth, tiled::kAllTiles, inverse_ + 2, {{2, 2}}, 1, false);
    fill(Opcode::kMeshNorth, tiled::kAllTiles, inverse_ + 3, {{2, 2}}, 0x100);
    filled_words_to_line(inverse_ + 2, line(SpreadLines::kReplicate));
    const std::int64_t copies = row_ + tiled::SpreadSoftmax::kNumerators;
    copy(
        {all_, all_words, kWord * inverse_, 2 * kWord, copies, kWord * all_words, line(SpreadLines::kReplicate), true});
    restart();
    for (const auto& [words, mask] : classes_) {
      const std::int64_t pairs = (words + 1) / 2;
      Draft draft(Opcode::kNarrowToWide);
      draft.tiles(mask)
          .nest(m::kToWideIn, nest(row_word(0), {{2, 2}, {1, 2}, {4, pairs}}, 7))
          .nest(m::kToWideOut, nest(line(SpreadLines::kPair), {{0, pairs}}, 0).swap(0, 1))
          .set(m::kToWideLineLevel, 2)
          .set(m::kTranspose)
          .set(m::kTransposeHalves)
          .wait(TileCounter::kParameters, {0, -1, 1}, Gate::kWriting)
          .signal(m::kSignalNarrowToWide, 0);
      if (words % 2 != 0) draft.set(m::kToWideIn.clip_limit, 1).set(m::kToWideIn.clip_dim, 2);
      writer_.add(draft);
    }
    for (const auto& [words, mask] : classes_) {
      const std::int64_t pairs = (words + 1) / 2, size = kWord * words;
      Draft draft = product(mask, {2, pairs});
      draft
          .nest(t::kIn,
                nest(copies,
                     {{kWord, 1}, {0, words}, {kWord * all_words, 1}, {kWord * all_words, 1}, {kWord * all_words, 1}},
                     29))
          .nest(t::kOut, nest(output_, {{kWord, words}, {size, 1}, {size, 1}, {size, 1}}, 15))
          .nest(t::kParam, nest(line(SpreadLines::kPair) * kQuarters, {{2, 2}, {0, pairs}}, 1)
                               .swap(1, kQuarters)
                               .clip(1, words % 2 != 0 ? 1 : 2))
          .nest(t::kPsum, nest(0, {{0, words}}, 0));
      if (words % 2 != 0) draft.set(t::kLoops.clip_limit, 0).set(t::kLoops.clip_dim, 1);
      writer_.add(draft);
    }
    restart_only(TileCounter::kNarrowToWide);
    restart_only(TileCounter::kParameters);
    restart(2);
  }

  const tiled::SpreadSoftmax& step_;
  const std::int64_t x_, output_, row_, differences_;  // bytes
  const std::int64_t lines_, identity_;
  const std::int64_t words_, numerators_;
  const int tiles_;
  const TileMask all_;
  std::vector<Difference> classes_;
  std::int64_t last_numerator_, relay_, inverse_, received_;  // words
};

}  // namespace

void emit_step(Emission& to, const tiled::SpreadSoftmax& step) { SpreadSoftmaxWriter(to, step).write(); }

}  // namespace reef::emit

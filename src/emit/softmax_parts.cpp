// SPDX-License-Identifier: Apache-2.0
#include "emit/softmax_parts.h"

#include <limits>

#include "isa/mesh.h"
#include "isa/movers.h"
#include "numeric/chip_requantize.h"
#include "numeric/chip_tables.h"

namespace reef::emit {
namespace {

namespace m = isa::movers;
namespace t = isa::tensor_op;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLargestByte = 255;

}  // namespace

LoopNest SoftmaxParts::nest(std::int64_t base, const Counts& counts, unsigned used) {
  std::vector<Dim> dims;
  for (const auto& [stride, count] : counts) {
    dims.push_back({stride, count, (used & 1) != 0});
    used >>= 1;
  }
  return LoopNest(base, std::move(dims));
}

void SoftmaxParts::fill(Opcode by, TileMask tiles, std::int64_t word, const Counts& counts, std::uint32_t value,
                        bool signals) {
  Draft draft(by);
  draft.tiles(tiles).nest(isa::mesh::kOut, nest(word, counts, counts.front().second > 1 ? 1 : 0));
  if (signals) draft.signal(isa::mesh::producers(by)[1], 1);
  writer_.add(draft.set(isa::mesh::kFill).set(isa::mesh::kFillValue, value));
}

Draft SoftmaxParts::operation(Opcode opcode, TileMask tiles, const std::vector<std::int64_t>& loops, How how,
                              int cells) {
  Draft draft(opcode);
  draft.tiles(tiles)
      .loops(loops)
      .set(t::kAccumulateInside, how == How::kWideParametersToLine ? 0 : 1)
      .set(t::kIn16, how == How::kWideInput || how == How::kWideBoth ? 1 : 0)
      .set(t::kParam16, how == How::kBytes || how == How::kWideInput ? 0 : 1)
      .cells(cells);
  return draft;
}

Draft& SoftmaxParts::requantize(Draft& draft, float scale, float max, float min) {
  return draft.set_float(t::kScale, scale).set_float(t::kMax, max).set_float(t::kMin, min);
}

void SoftmaxParts::copy(const WordCopy& what) {
  const std::int64_t n = what.words, size = what.from_size, to = what.to_size;
  const Counts rest = {{size, 1}, {0, 1}, {size, 1}, {0, 1}, {size, 1}};
  Counts in = what.again ? Counts{{kWord, 1}, {0, n}} : Counts{{kWord, n}, {0, 1}};
  in.insert(in.end(), rest.begin(), rest.end());
  Draft draft = operation(Opcode::kMultiplyAdd, what.tiles, {1, n}, How::kBytes);
  requantize(draft, 1.0f, kInfinity, -kInfinity);
  writer_.add(draft.nest(t::kIn, nest(what.from, in, 0x55))
                  .nest(t::kOut, nest(what.to, {{kWord, n}, {to, 1}, {to, 1}, {to, 1}}, 15))
                  .nest(t::kParam, nest(what.line * kQuarters, {{kQuarters, 1}, {0, n}}, 1))
                  .nest(t::kPsum, nest(0, {{0, n}}, 0))
                  .set(t::kPsumGroup2));
}

void SoftmaxParts::filled_words_to_line(std::int64_t word, std::int64_t line) {
  writer_.add(Draft(Opcode::kNarrowToWide)
                  .tiles(tiled::kAllTiles)
                  .nest(m::kToWideIn, nest(word, {{1, 4}}, 1))
                  .nest(m::kToWideOut, nest(line, {{1, 1}}, 0))
                  .set(m::kToWideLineLevel, 1)
                  .wait(TileCounter::kMeshSouthIn, {1, total(TileCounter::kMeshSouthIn), 0}));
  fence();
}

Draft SoftmaxParts::maximum(const std::vector<std::int64_t>& loops) {
  const std::int32_t zero = input_.zero_point;
  const numeric::ChipClamp clamp = numeric::chip_clamp(input_.scale, zero, numeric::ChipActivation::kNone);
  Draft draft = operation(Opcode::kMaximum, tiled::mask_of(0), loops, How::kBytes);
  requantize(draft, 1.0f, clamp.max, clamp.min)
      .set(t::kPsumGroup)
      .set(t::kPsumGroupLevel, 1)
      .set(t::kParamZero, zero)
      .set(t::kConstant, -zero)
      .set(t::kOutZero, zero)
      .set(t::kScalingLevel, 1)
      .set(t::kReduceDims, 3)
      .signal(t::kSignalParameters, 1);
  return draft;
}

void SoftmaxParts::maximum_of_word(std::int64_t word, std::int64_t output, std::int64_t line) {
  const std::int64_t used = total(TileCounter::kParameters), filled = total(TileCounter::kNarrowToWide);
  // Lines are all used when the word is there; where none were, the wait is for the line before last.
  const std::int64_t free = used == 0 ? -1 : used;
  writer_.add(Draft(Opcode::kNarrowToWide)
                  .tiles(tiled::mask_of(0))
                  .nest(m::kToWideIn, nest(word, {{1, 1}}, 0))
                  .nest(m::kToWideOut, nest(line, {{1, 1}}, 0).swap(1, 1))
                  .set(m::kToWideLineLevel, 1)
                  .wait(TileCounter::kParameters, {1, free, 1}, Gate::kWriting)
                  .signal(m::kSignalNarrowToWide, 1));
  writer_.add(maximum({4})
                  .nest(t::kOut, nest(output, {{kWord, 1}, {kWord, 1}, {kWord, 1}, {kWord, 1}}, 15))
                  .nest(t::kParam, nest(line * kQuarters, {{1, 4}}, 1).swap(1, kQuarters))
                  .nest(t::kPsum, nest(0, {{0, 4}}, 0))
                  .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1}));
}

void SoftmaxParts::differences(const std::vector<Difference>& classes, const DifferencePlaces& at) {
  TileMask tiles = 0;
  for (const Difference& c : classes) tiles |= c.tiles;
  const auto pair_of_lines = [&] {
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(tiles)
        .nest(m::kToWideIn, nest(at.constants, {{1, 4}, {4, 2}}, 3))
        .nest(m::kToWideOut, nest(at.pair, {{1, 2}}, 1))
        .set(m::kToWideLineLevel, 1);
    return draft;
  };
  // The maximum times -1: the sum goes to a line.
  fill(Opcode::kMeshNorth, tiled::kAllTiles, at.constants, {{1, 8}}, 0);
  writer_.add(pair_of_lines().wait(TileCounter::kMeshSouthIn, {2, total(TileCounter::kMeshSouthIn), 0}));
  fence();
  for (const auto& [words, mask] : classes) {
    Draft draft = operation(Opcode::kMultiplyAdd, mask, {1}, How::kWideParametersToLine);
    requantize(draft, 1.0f, 0, -kLargestByte)
        .nest(t::kIn, nest(at.maximum, {{1, 1}, {0, 1}, {at.maximum_size, 1}}, 5))
        .nest(t::kOut, nest(at.unused, {{1, 1}, {0, 1}, {kWord * words, 1}}, 4))
        .nest(t::kParam, nest(at.pair * kQuarters, {{1, 1}}, 0))
        .nest(t::kPsum, nest(at.negated * kQuarters, {{1, 1}}, 0))
        .set(t::kLanesOff, 6)
        .set(t::kParamZero, 1)
        .set(t::kOutZero, 255);
    writer_.add(draft);
  }
  restart_only(TileCounter::kParameters);
  fence();
  // x times 1, with that line as biases. Parameters are 1 too large: 0 is no number that they can be.
  fill(Opcode::kMeshNorth, tiled::kAllTiles, at.constants, {{1, 1}}, 0x10002);
  fill(Opcode::kMeshEast, tiled::kAllTiles, at.constants + 1, {{1, 1}}, 0x20001);
  fill(Opcode::kMeshWest, tiled::kAllTiles, at.constants + 2, {{1, 4}}, 0x10001);
  fill(Opcode::kMeshSouth, tiled::kAllTiles, at.constants + 6, {{1, 1}}, 0x10002);
  fill(Opcode::kMeshNorth, tiled::kAllTiles, at.constants + 7, {{1, 1}}, 0x20001);
  Draft ones = pair_of_lines();
  for (const TileCounter counter :
       {TileCounter::kMeshNorthIn, TileCounter::kMeshSouthIn, TileCounter::kMeshWestIn, TileCounter::kMeshEastIn}) {
    ones.wait(counter, {2, total(counter), 1});
  }
  writer_.add(ones.signal(m::kSignalNarrowToWide, 1));
  writer_.add(Draft(Opcode::kWideToNarrow)
                  .tiles(tiles)
                  .nest(m::kToNarrowIn, nest(at.negated, {{1, 1}, {0, 2}, {1, 1}}, 5))
                  .nest(m::kToNarrowOut, nest(chip::kScalingBiasesWord, {{1, 32}, {0, 2}}, 1).swap(1, 32))
                  .set(m::kToScaling)
                  .set(m::kToNarrowLineLevel, 1)
                  .wait(TileCounter::kAvdata, {2, total(TileCounter::kAvdata), 1}, Gate::kWriting)
                  .signal(m::kSignalWideToNarrow, 2));
  for (const auto& [words, mask] : classes) {
    const std::int64_t size = kWord * words;
    std::vector<std::int64_t> loops = {2};
    Counts parameters = {{kQuarters, 2}}, sums = {{0, 2}};
    if (words > 1) {
      loops.push_back(words);
      parameters.emplace_back(0, words);
      sums.emplace_back(0, words);
    }
    Draft draft = operation(Opcode::kMultiplyAdd, mask, loops, How::kWideParameters);
    requantize(draft, 1.0f, 0, -kLargestByte)
        .nest(t::kIn, nest(at.input, {{2, 2 * words}, {size, 1}, {size, 1}, {size, 1}}, 15))
        .nest(t::kOut, nest(at.output, {{kWord, words}, {size, 1}, {size, 1}, {size, 1}}, 15))
        .nest(t::kParam, nest(at.pair * kQuarters, parameters, 1))
        .nest(t::kPsum, nest(0, sums, 0))
        .set(t::kPsumGroup)
        .set(t::kPsumGroupLevel, 1)
        .set(t::kParamZero, 1)
        .set(t::kScalingLevel, 1)
        .set(t::kReduceDims, 1)
        .set(t::kOutZero, 255)
        .set(t::kBias)
        .wait(TileCounter::kNarrowToWide, {2, 1, 1})
        .wait(TileCounter::kWideToScaling, {2, 1, 1})
        .signal(t::kSignalAvdata, 3);
    writer_.add(draft);
  }
}

void SoftmaxParts::square_of_root(std::int64_t at, std::int64_t scratch, std::int64_t line,
                                  std::int64_t identity_line) {
  constexpr float kMostInverse = 32768;
  const TileMask tile = tiled::mask_of(0);
  Draft square = operation(Opcode::kMultiplyAdd, tile, {2, 2}, How::kWideBoth);
  requantize(square, 1.0f / numeric::kChipExpOne, kMostInverse, 0);
  writer_.add(square.nest(t::kIn, nest(at, {{2, 4}, {8, 1}, {8, 1}, {8, 1}}, 15))
                  .nest(t::kOut, nest(scratch, {{kWord, 2}, {kWord, 4}, {16, 1}, {16, 1}, {16, 1}}, 31))
                  .nest(t::kParam, nest(line * kQuarters, {{2, 2}, {0, 2}}, 1).swap(1, kQuarters))
                  .nest(t::kPsum, nest(0, {{1, 1}, {0, 4}}, 1))
                  .set(t::kPsumGroup)
                  .set(t::kPsumGroupLevel, 1)
                  .set(t::kOut16)
                  .set(t::kScalingLevel, 4)
                  .wait(TileCounter::kNarrowToWide, {1, total(TileCounter::kNarrowToWide) + 1, 1})
                  .signal(t::kSignalParameters, 1));
  writer_.add(Draft(Opcode::kNarrowToWide)
                  .tiles(tile)
                  .nest(m::kToWideIn, nest(at / kWord, {{1, 2}}, 1))
                  .nest(m::kToWideOut, nest(line, {{0, 2}}, 0).swap(0, 1))
                  .wait(TileCounter::kParameters, {0, -1, 1}, Gate::kWriting)
                  .signal(m::kSignalNarrowToWide, 0));
  writer_.tile_fence(unit_mask(isa::Unit::kNarrowToWide), 0);
  Draft pack = operation(Opcode::kMultiplyAdd, tile, {4}, How::kWideInput);
  requantize(pack, 1.0f, kInfinity, -kInfinity);
  writer_.add(pack.nest(t::kIn, nest(scratch, {{kWord, 4}, {16, 1}, {16, 1}, {16, 1}}, 15))
                  .nest(t::kOut, nest(at, {{kWord, 2}, {8, 1}, {8, 1}, {8, 1}}, 15))
                  .nest(t::kParam, nest(identity_line * kQuarters, {{1, 4}}, 1).swap(1, 0))
                  .nest(t::kPsum, nest(0, {{0, 4}}, 0))
                  .set(t::kPsumGroup)
                  .set(t::kPsumGroupLevel, 1)
                  .set(t::kOut16)
                  .set(t::kLanesOff, 6)
                  .set(t::kScalingLevel, 2));
  restart_only(TileCounter::kNarrowToWide);
  restart_only(TileCounter::kParameters);
}

Draft SoftmaxParts::product(TileMask tiles, const std::vector<std::int64_t>& loops) {
  constexpr float kOutputScale = 1.0f / 256;
  const float unit = 1.0f / numeric::kChipRootOne;
  Draft draft = operation(Opcode::kMultiplyAdd, tiles, loops, How::kWideBoth);
  requantize(draft, numeric::chip_product_multiplier(unit, unit, kOutputScale), kLargestByte, 0)
      .set(t::kScalingLevel, 1)
      .set(t::kPsumGroup)
      .wait(TileCounter::kNarrowToWide, {1, 1, 1})
      .signal(t::kSignalParameters, 1);
  return draft;
}

}  // namespace reef::emit

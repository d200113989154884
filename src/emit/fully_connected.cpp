// SPDX-License-Identifier: Apache-2.0
// A fully connected layer whose weights lie on the tiles that use them.
//
//   multiply_add     a word of the input and a line of weights per step, for up to 64 outputs at once; the sums never
//                    leave the cells
//   wide_to_narrow   multipliers and biases into scaling memory, before that
//
// All tiles work on their own; the ring is not used. Waits: WIDE_TO_SCALING, the tile's multipliers and biases are
// there. Layers of more than 1024 outputs give several groups to a tile, one after the other with a fence between them:
// scaling memory has two halves, but how they change from instruction to instruction is not known.
//
// How it is known: the rows of Google's newest compiler, fences and all, on dense networks and on the heads of
// MobileNets (docs/hardware/google_heads.md#fully-connected). It fences twice before and after, for reasons that are
// not known; here that is done only where its rows are compared. Several groups on a tile are our own.
#include "emit/blocks.h"
#include "emit/registers.h"
#include "isa/fence.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;

using tiled::FullyConnected;

class FullyConnectedWriter : BlockWriter {
 public:
  FullyConnectedWriter(Emission& to, const FullyConnected& layer)
      : BlockWriter(to),
        layer_(layer),
        as_google_(to.program.level == tiled::Level::kAsGoogle),
        input_(to.program.tensor(layer.input)),
        output_(to.program.tensor(layer.output)),
        first_line_(to.program.chunk(layer.parameters).at.front().line),
        scaling_lines_(int{layer.header.multipliers} + int{layer.header.biases}) {}

  void write() {
    if (as_google_) {
      writer_.barrier();
      writer_.tile_fence(kAllUnits, kCountersOfTiles);
      writer_.add(Draft(Opcode::kScalarFence).set(isa::scalar_fence::kDrain, kScalarMovers));
    }
    for (std::int32_t group = 0; group < output_.run / chip::kCells; ++group) {
      writer_.tile_fence(kAllUnits, kCountersOfTiles);
      const TileMask tiles = tiles_of(group);
      if (scaling_lines_ > 0) load_scaling(group, tiles);
      const auto cells = [&](int tile) { return cells_of(group, tile); };
      for_each_class(tiles, cells, [&](TileMask mask, std::int32_t count) { compute(group, mask, count); });
    }
    if (as_google_) {
      writer_.tile_fence(kAllUnits, kCountersOfTiles);
      writer_.tile_fence(kAllUnits, kCountersOfTiles, true);
      writer_.await_tiles();
    }
  }

 private:
  // Outputs of a tile's group, as whole words.
  std::int32_t cells_of(std::int32_t group, int tile) const {
    const std::int32_t left = output_.run_of(tile) - group * chip::kCells;
    return std::clamp((left + kWord - 1) / kWord * kWord, 0, chip::kCells);
  }
  TileMask tiles_of(std::int32_t group) const {
    TileMask tiles = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      if (cells_of(group, t) > 0) tiles |= tiled::mask_of(t);
    }
    return tiles;
  }
  std::int32_t header_line(std::int32_t group) const { return first_line_ + group * layer_.group_lines(); }

  void load_scaling(std::int32_t group, TileMask tiles) {
    namespace m = isa::movers;
    const std::int32_t first = layer_.header.multipliers ? chip::kScalingScalesWord : chip::kScalingBiasesWord;
    writer_.add(Draft(Opcode::kWideToNarrow)
                    .tiles(tiles)
                    .nest(m::kToNarrowIn, LoopNest(header_line(group), {step(1, scaling_lines_)}))
                    .nest(m::kToNarrowOut,
                          LoopNest(first, {step(1, kScalingHalf), step(chip::kScalingBiasesWord, scaling_lines_)})
                              .swap(2, kScalingHalf))
                    .set(m::kToScaling)
                    .set(m::kToNarrowLineLevel, 1)
                    .wait(TileCounter::kAvdata, {2, -1, 1}, Gate::kWriting)
                    .signal(m::kSignalWideToNarrow, 2));
  }

  void compute(std::int32_t group, TileMask tiles, std::int32_t cells) {
    const std::int64_t words = layer_.input_words, all = words * kWord;
    const std::int32_t weights = header_line(group) + layer_.header.arrays();
    const std::int32_t out = output_.address + group * chip::kCells;
    Draft draft(Opcode::kMultiplyAdd);
    draft.tiles(tiles)
        .loops({words})
        .nest(t::kIn, LoopNest(input_.address, {step(kWord, words), step(all, 1), step(all, 1)}))
        .nest(t::kOut, LoopNest(out, {step(kWord, cells / kWord), step(cells, 1), step(most_cells(group), 1)}))
        .nest(t::kParam, LoopNest(std::int64_t{weights} * chip::kWideAddressUnitsPerLine, {step(kWord, words)}))
        .nest(t::kPsum, LoopNest(0, {repeat(words)}));
    if (scaling_lines_ > 0) draft.wait(TileCounter::kWideToScaling, {1, 1, 1});
    draft.signal(t::kSignalAvdata, 2)
        .signal(t::kSignalParameters, 1)
        .set(t::kStaticParams)
        .set(t::kAccumulateInside)
        .set(t::kReduceDims, 1)
        .set(t::kScalingLevel, 1)
        .cells(cells);
    set_numbers(draft, weights);
    writer_.add(draft);
  }
  // A dimension of one step, whose stride has no effect, is as long as the longest run of the layer's tiles.
  std::int32_t most_cells(std::int32_t group) const { return cells_of(group, 0); }

  void set_numbers(Draft& draft, std::int32_t weights) const {
    const darwinn::LayerRequantization& numbers = layer_.constants;
    draft.set(t::kInZero, numbers.input_zero_point)
        .set(t::kOutZero, numbers.output_zero_point)
        .set_float(t::kScale, numbers.multiplier)
        .set_float(t::kMax, numbers.clamp.max)
        .set_float(t::kMin, numbers.clamp.min)
        .set(t::kBias, layer_.header.biases)
        .set(t::kScalePerCell, layer_.header.multipliers);
    if (layer_.header.zero_points) {  // the header's last line
      draft.set(t::kParamZeroLine)
          .set(t::kParamZeroFirst, weights - 1)
          .set(t::kParamZeroLast, weights - 1)
          .set(t::kParamZeroStep, 1);
    } else {
      draft.set(t::kParamZero, numbers.weight_zero_point);
    }
  }

  const FullyConnected& layer_;
  const bool as_google_;
  const TiledTensor& input_;
  const TiledTensor& output_;
  const std::int32_t first_line_;
  const int scaling_lines_;
};

}  // namespace

void emit_step(Emission& to, const FullyConnected& layer) { FullyConnectedWriter(to, layer).write(); }

}  // namespace reef::emit

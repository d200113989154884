// SPDX-License-Identifier: Apache-2.0
// A convolution or depthwise convolution on all tiles at once.
//
// Every tile that owns pixels of the output computes them; all tiles need the same parameters at about the same time,
// so these are kept on one tile (or a few) and sent to all over the ring:
//
//   parameter lines -> ring B -> ring_receive: header lines and weight blocks into wide memory
//                                 wide_to_narrow: multipliers and biases into scaling memory
//                                 multiply_add: pixels by weights
// A depthwise layer uses 4 words of parameters at a step, not 64. Its lines are packed (those of convolutions of up to
// four channels may be, too); they go to the scalar core, through its loop-back buffer, and come back as lines of 4
// words over ring A:
//   packed lines -> ring B -> outfeed -> loop-back buffer -> pop -> ring A -> ring_receive -> ...
// Parameters that are kept nowhere come over ring A, too, from the host (streaming.cpp).
//
// Waits, with everything counted from the totals before the layer:
//   ring_receive     PARAMETERS: the block before last is used up, its lines are free (the last one, where there is one
//                    buffer only)
//   wide_to_narrow   RING_READ: the group's header has come; AVDATA: the group before last is done with its half of
//                    scaling memory
//   multiply_add     RING_READ: the block has come; WIDE_TO_SCALING: so have multipliers and biases
//   ring_send        RING_PRODUCER_B: all lines sent by others before have gone
//   loop-back        RING_OUTFEED, LOOPBACK_POP: words are there, places are free; RING_PRODUCER_A: the lines before
//                    last have left the buffer, so that ring B is not blocked by lines that find no room
// Instructions are queued in this order and run side by side; the barrier before the next block ends it. Where patches
// of pixels reach beyond a tile's own, its halo is filled when it is done with them.
//
// How it is known: what Google's newest compiler writes, instruction by instruction
// (docs/hardware/google_programs.md#convolution and the sections around it).
#include "emit/blocks.h"
#include "emit/registers.h"
#include "isa/host_queues.h"
#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace r = isa::ring;
namespace t = isa::tensor_op;

using tiled::Convolution;

constexpr std::int32_t kCellsPerScalingRow = 16;  // multipliers and biases are moved 16 cells at a time, 8 steps

// A dimension of a pixel walk, with what it runs over: neighbours in memory are walked as one dimension.
enum class Over { kChannels, kKernelX, kKernelY, kPatch, kX, kY, kOuter };
struct WalkDim {
  Over over;
  std::int64_t stride, count;
  bool keep = false;  // even if it has one step
};

// Dimensions of one step are left out; those whose addresses continue the one inside are joined with it.
std::vector<Dim> joined(std::initializer_list<WalkDim> walk) {
  const auto continues = [](Over inner, Over outer) {
    return (inner == Over::kChannels && outer == Over::kKernelX) ||
           (inner == Over::kKernelX && outer == Over::kKernelY) || (inner == Over::kX && outer == Over::kY);
  };
  std::vector<WalkDim> kept;
  for (const WalkDim& dim : walk) {
    if (dim.count == 1 && !dim.keep) continue;
    if (!kept.empty() && continues(kept.back().over, dim.over) &&
        dim.stride == kept.back().stride * kept.back().count) {
      kept.back().count *= dim.count;
      if (kept.back().over == Over::kChannels) kept.back().over = Over::kKernelX;
      continue;
    }
    kept.push_back(dim);
  }
  std::vector<Dim> dims;
  for (const WalkDim& dim : kept) dims.push_back(step(dim.stride, dim.count));
  return dims;
}

class LayerWriter : BlockWriter {
 public:
  LayerWriter(Emission& to, const tiled::TiledProgram& program, const Convolution& layer)
      : BlockWriter(to),
        as_google_(program.level == tiled::Level::kAsGoogle),
        layer_(layer),
        input_(program.tensor(layer.input)),
        output_(program.tensor(layer.output)),
        chunk_(program.chunk(layer.parameters)),
        weights_line_(program.line_of(layer.weights)),
        header_line_(program.line_of(layer.header_lines)),
        sums_line_(program.line_of(layer.sums)),
        header_lines_(layer.header.arrays()),
        scaling_lines_(int{layer.header.multipliers} + int{layer.header.biases}),
        over_ring_a_(layer.packed || chunk_.is_streamed()),
        ring_read_(over_ring_a_ ? TileCounter::kRingReadA : TileCounter::kRingReadB),
        tiles_(output_.owners()) {
    for (int t = 0; t < chip::kTiles; ++t) {
      for (int c = 0; c < isa::kTileCounterCount; ++c) {
        before_[at(t)][at(c)] = writer_.total(static_cast<TileCounter>(c), t);
      }
    }
  }

  void write() {
    writer_.barrier();
    receive_parameters();
    if (scaling_lines_ > 0) load_scaling();
    compute();
    if (chunk_.is_streamed()) {
      send_from_host(to_, chunk_, tiles_);
    } else if (layer_.packed) {
      send_packed();
    } else {
      send_lines();
    }
    exchange();
  }

 private:
  std::int64_t before(TileCounter counter, int tile) const { return before_[at(tile)][at(counter)]; }

  void receive_parameters() {
    std::vector<Dim> dims = {{1, layer_.block_lines, !uses_one_line()}};
    if (layer_.partial_sums) dims.push_back(repeat(layer_.blocks));
    dims.push_back(repeat(1));
    dims.push_back(repeat(layer_.groups));
    const LoopNest lines = LoopNest(weights_line_, dims).swap(1, layer_.buffers == 2 ? layer_.block_lines : 0);
    const auto used_up = [&](int tile) { return before(TileCounter::kParameters, tile); };
    for_each_class(tiles_, used_up, [&](TileMask tiles, std::int64_t used) {
      Draft draft(over_ring_a_ ? Opcode::kRingReceiveA : Opcode::kRingReceiveB);
      draft.tiles(tiles)
          .nest(r::kReceiveOut, lines)
          .wait(TileCounter::kParameters, {1, used - (layer_.buffers - 1), 1}, Gate::kWriting)
          .signal(over_ring_a_ ? r::kSignalRingReadA : r::kSignalRingReadB, 1);
      if (header_lines_ > 0) {
        draft.set(r::kHeader)
            .set(r::kHeaderLevel, layer_.partial_sums ? 3 : 2)
            .set(r::kHeaderFirst, header_line_)
            .set(r::kHeaderLines, header_lines_)
            .set(r::kHeaderLast, last_header_line())
            .set(r::kHeaderStep, header_lines_);
      }
      writer_.add(draft);
    });
  }
  std::int32_t last_header_line() const { return header_line_ + header_lines_ * layer_.buffers - 1; }

  void load_scaling() {
    namespace m = isa::movers;
    const std::int32_t steps =
        layer_.packed ? layer_.cells / 2
                      : (layer_.cells + kCellsPerScalingRow - 1) / kCellsPerScalingRow * (kCellsPerScalingRow / 2);
    const std::int32_t first = layer_.header.multipliers ? chip::kScalingScalesWord : chip::kScalingBiasesWord;
    LoopNest lines(header_line_, {step(1, scaling_lines_), repeat(layer_.groups)});
    if (layer_.buffers == 2) lines.swap(1, header_lines_);
    using Totals = std::pair<std::int64_t, std::int64_t>;
    const auto totals = [&](int tile) { return Totals(before(ring_read_, tile), before(TileCounter::kAvdata, tile)); };
    for_each_class(tiles_, totals, [&](TileMask tiles, const Totals& had) {
      writer_.add(
          Draft(Opcode::kWideToNarrow)
              .tiles(tiles)
              .nest(m::kToNarrowIn, lines)
              .nest(m::kToNarrowOut, LoopNest(first, {step(1, steps), step(chip::kScalingBiasesWord, scaling_lines_),
                                                      repeat(layer_.groups)})
                                         .swap(2, kScalingHalf))
              .set(m::kToScaling)
              .set(m::kToNarrowLineLevel, 1)
              .wait(ring_read_, {1, had.first + 1, layer_.blocks})
              .wait(TileCounter::kAvdata, {2, had.second - 1, 1}, Gate::kWriting)
              .signal(m::kSignalWideToNarrow, 2));
    });
  }

  // ---- multiply_add ----

  struct TileWork {
    isa::Instruction instruction;  // without tiles
    Status status;
    bool several_columns = false, several_rows = false;
    friend bool operator==(const TileWork& a, const TileWork& b) {
      return a.instruction == b.instruction && a.several_columns == b.several_columns &&
             a.several_rows == b.several_rows;
    }
  };

  void compute() {
    // Tiles whose instructions come out the same share one, except single pixels, rows and columns with larger shares.
    for_each_class(
        tiles_,
        [&](int tile) {
          const Draft draft = work_of(tile);
          return TileWork{draft.instruction(), draft.status(), columns_of(tile) > 1, rows_of(tile) > 1};
        },
        [&](TileMask tiles, const TileWork&) {
          int tile = 0;
          while ((tiles & tiled::mask_of(tile)) == 0) ++tile;
          writer_.add(work_of(tile).tiles(tiles));
        });
  }
  std::int32_t rows_of(int tile) const { return output_.rows.tile(chip::tile_row(tile)).own(); }
  std::int32_t columns_of(int tile) const { return output_.columns.tile(chip::tile_column(tile)).own(); }
  // Patches of pixels, the last of which may lie partly beyond the tile's own.
  std::int32_t patch_rows_of(int tile) const { return (rows_of(tile) + layer_.patch_rows - 1) / layer_.patch_rows; }
  std::int32_t patch_columns_of(int tile) const {
    return (columns_of(tile) + layer_.patch_columns - 1) / layer_.patch_columns;
  }
  bool computes_beyond(int tile) const {
    return rows_of(tile) % layer_.patch_rows != 0 || columns_of(tile) % layer_.patch_columns != 0;
  }

  LoopNest pixels_read(int tile) const {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const std::int64_t pitch = input_.pitch, row_bytes = input_.row_bytes(column);
    const std::int32_t first_y = layer_.y.first(output_.rows.tile(row).begin);
    const std::int32_t first_x = layer_.x.first(output_.columns.tile(column).begin);
    const WalkDim channels{Over::kChannels, kWord, layer_.block_words, true};
    const WalkDim kernel_x{Over::kKernelX, pitch * layer_.x.dilation, layer_.taps_x()};
    const WalkDim kernel_y{Over::kKernelY, row_bytes * layer_.y.dilation, layer_.taps_y()};
    const WalkDim x{Over::kX, pitch * layer_.x.stride * layer_.patch_columns, patch_columns_of(tile)};
    const WalkDim y{Over::kY, row_bytes * layer_.y.stride * layer_.patch_rows, patch_rows_of(tile)};
    const std::int64_t block_bytes = std::int64_t{kWord} * layer_.block_words;
    std::vector<Dim> dims;
    if (layer_.depthwise) {
      dims = joined({channels, kernel_x, kernel_y, x, y, {Over::kOuter, kWord, layer_.groups, true}});
    } else if (layer_.partial_sums) {
      dims = joined({channels, kernel_x, kernel_y, x, y, {Over::kOuter, block_bytes, layer_.blocks, true}});
      dims.push_back(repeat(layer_.groups));
    } else {
      dims = joined({channels, kernel_x, kernel_y, {Over::kOuter, block_bytes, 1, true}, x, y});
      dims.push_back(repeat(layer_.groups));
    }
    return LoopNest(input_.byte_of(row, column, first_y, first_x), dims);
  }

  LoopNest pixels_written(int tile) const {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const std::int32_t pixels = layer_.patch_rows * layer_.patch_columns;
    const std::int32_t pixel_cells = layer_.cells / pixels;
    const std::int64_t pitch = output_.pitch, row_bytes = output_.row_bytes(column);
    const std::vector<Dim> dims = joined({{Over::kChannels, kWord, pixel_cells / kWord, true},
                                          {Over::kPatch, pitch, layer_.patch_columns},
                                          {Over::kPatch, row_bytes, layer_.patch_rows},
                                          {Over::kX, pitch * layer_.patch_columns, patch_columns_of(tile)},
                                          {Over::kY, row_bytes * layer_.patch_rows, patch_rows_of(tile)},
                                          {Over::kOuter, pixel_cells, layer_.groups, true}});
    LoopNest nest(output_.first_own_byte(row, column), dims);
    if (layer_.groups > 1) nest.clip(static_cast<int>(dims.size()) - 1, layer_.last_cells / pixels / kWord);
    return nest;
  }

  // There is nothing to add up: one loop less, as in Google's programs.
  bool uses_one_line() const {
    return as_google_ && layer_.block_lines == 1 && layer_.groups == 1 && !layer_.partial_sums && !layer_.depthwise;
  }

  Draft work_of(int tile) const {
    const std::int64_t pixels = std::int64_t{patch_rows_of(tile)} * patch_columns_of(tile);
    const bool several = pixels > 1;
    const bool sums_in_memory = layer_.partial_sums && several;  // one pixel's sum stays in the cells
    const bool one_line = uses_one_line() && several;
    std::vector<std::int64_t> loops;
    if (!one_line) loops.push_back(layer_.block_lines);
    if (several) loops.push_back(pixels);
    const int block_level = static_cast<int>(loops.size());  // one pass: one block of parameters is used up
    if (layer_.partial_sums) loops.push_back(layer_.blocks);
    const int group_level = static_cast<int>(loops.size());
    loops.push_back(layer_.groups);

    const LoopNest out = pixels_written(tile);
    std::vector<Dim> parameters;
    if (!one_line) parameters.push_back(step(kWord, layer_.block_lines));
    for (std::size_t i = parameters.size(); i < loops.size(); ++i) parameters.push_back(repeat(loops[i]));
    LoopNest weights(std::int64_t{weights_line_} * chip::kWideAddressUnitsPerLine, parameters);
    if (layer_.buffers == 2)
      weights.swap(block_level, std::int64_t{chip::kWideAddressUnitsPerLine} * layer_.block_lines);

    Draft draft(Opcode::kMultiplyAdd);
    draft.loops(loops)
        .nest(t::kIn, pixels_read(tile))
        .nest(t::kOut, out)
        .nest(t::kParam, weights)
        .nest(t::kPsum, sums(loops, sums_in_memory))
        .wait(ring_read_, {block_level, before(ring_read_, tile) + 1, 1});
    if (scaling_lines_ > 0) {
      draft.wait(TileCounter::kWideToScaling, {group_level, before(TileCounter::kWideToScaling, tile) + 1, 1});
    }
    draft.signal(t::kSignalAvdata, static_cast<int>(out.dims().size()) - 1)
        .signal(t::kSignalParameters, block_level)
        .set(t::kStaticParams, !one_line)
        .set(t::kAccumulateInside, !sums_in_memory)
        .set(t::kReduceDims, one_line              ? 0
                             : layer_.partial_sums ? 1 | 1 << block_level
                                                   : 1)
        .set(t::kScalingLevel, group_level)
        .cells(layer_.cells, layer_.last_cells);
    if (!sums_in_memory && pixels * layer_.groups > 1) {
      draft.set(t::kPsumGroup).set(t::kPsumGroupLevel, one_line ? 0 : layer_.partial_sums ? 2 : 1);
    }
    set_numbers(draft);
    return draft;
  }

  LoopNest sums(const std::vector<std::int64_t>& loops, bool in_memory) const {
    std::vector<Dim> dims;
    for (const std::int64_t count : loops) dims.push_back(repeat(count));
    if (in_memory) dims[1] = step(chip::kWideAddressUnitsPerLine, loops[1]);
    return LoopNest(layer_.partial_sums ? std::int64_t{sums_line_} * chip::kWideAddressUnitsPerLine : 0, dims);
  }

  void set_numbers(Draft& draft) const {
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
          .set(t::kParamZeroFirst, header_line_ + header_lines_ - 1)
          .set(t::kParamZeroLast, last_header_line())
          .set(t::kParamZeroStep, layer_.buffers == 2 ? header_lines_ : 1);
    } else {
      draft.set(t::kParamZero, numbers.weight_zero_point);
    }
  }

  // ---- Parameters to all tiles ----

  void send_lines() {
    for (const tiled::ParameterPiece& piece : chunk_.at) {
      writer_.add(Draft(Opcode::kRingSend)
                      .tiles(tiled::mask_of(piece.tile))
                      .nest(r::kSendIn, LoopNest(piece.line, {step(1, piece.lines)}))
                      .wait(TileCounter::kRingProducerB, {1, writer_.total(TileCounter::kRingProducerB, piece.tile), 1})
                      .set(r::kChannel, 1)
                      .signal(r::kSignalRingProducer, 0)
                      .set(r::kToTiles, tiles_));
    }
  }

  void send_packed() {
    namespace q = isa::host_queues;
    const tiled::ParameterPiece& piece = chunk_.at.front();
    const std::int64_t words =
        std::int64_t{layer_.groups} * layer_.cells * (header_lines_ + std::int64_t{layer_.block_lines} * layer_.blocks);
    const std::int64_t popped = writer_.total(ScalarCounter::kLoopbackPop);
    const std::int64_t looped = writer_.total(ScalarCounter::kRingOutfeed);
    const std::int64_t turns_a = writer_.total(TileCounter::kRingProducerA, piece.tile);
    LoopNest pops(0, {step(1, kLineWords), repeat(piece.lines)});
    pops.swap(1, kLineWords).clip(1, words - std::int64_t{kLineWords} * (piece.lines - 1));
    writer_.add(Draft(Opcode::kPop)
                    .set(q::kPopSource, 2)
                    .nest(q::kPopIn, pops)
                    .wait(ScalarCounter::kRingOutfeed, {0, looped + 1, 1})
                    .signal(q::kSignalPopRingProducer, 1)
                    .signal(q::kSignalPop, 0)
                    .set(q::kPopTiles, tiles_)
                    .set(q::kPopLineWords, layer_.cells));
    LoopNest loop_back(0, {step(1, kLineWords), repeat(piece.lines)});
    writer_.add(Draft(Opcode::kOutfeed)
                    .nest(q::kOutfeedOut, loop_back.swap(1, kLineWords))
                    .wait(ScalarCounter::kLoopbackPop, {0, popped + 1 - chip::kLoopBackWindowWords, 1})
                    .signal(q::kSignalOutfeed, 0)
                    .set(q::kOutfeedLineWords, kLineWords));
    std::vector<Dim> lines = {step(1, 1)};
    if (piece.lines > 1) lines.push_back(step(1, piece.lines));
    writer_.add(Draft(Opcode::kRingSend)
                    .tiles(tiled::mask_of(piece.tile))
                    .nest(r::kSendIn, LoopNest(piece.line, lines))
                    .wait(TileCounter::kRingProducerA, {1, turns_a - 1, 1})
                    .wait(TileCounter::kRingProducerB, {1, writer_.total(TileCounter::kRingProducerB, piece.tile), 1})
                    .set(r::kChannel, 1)
                    .signal(r::kSignalRingProducer, 1)
                    .set(r::kToScalar));
  }

  // ---- The result's halo ----

  void exchange() {
    OwnPixels own;
    // A group of results is a block of the exchange.
    if (layer_.depthwise) own.block_words = 1;
    for (int t = 0; t < chip::kTiles; ++t) {
      own.first[at(t)] = before(TileCounter::kAvdata, t) + 1;
    }
    // Results beyond the tile's pixels lie where the halo belongs.
    bool is_over_halo = false;
    for (int t = 0; t < chip::kTiles; ++t) is_over_halo |= (tiles_ & tiled::mask_of(t)) != 0 && computes_beyond(t);
    if (is_over_halo && output_.has_halo() && !output_.is_part) writer_.tile_fence(kAllUnits, 0);
    exchange_halo(writer_, output_, &own);
  }

  const bool as_google_;
  const Convolution& layer_;
  const TiledTensor& input_;
  const TiledTensor& output_;
  const tiled::ParameterChunk& chunk_;
  const std::int32_t weights_line_, header_line_, sums_line_;
  const int header_lines_, scaling_lines_;
  const bool over_ring_a_;
  const TileCounter ring_read_;
  const TileMask tiles_;  // that own pixels of the output
  std::array<std::array<std::int64_t, isa::kTileCounterCount>, chip::kTiles> before_{};
};

}  // namespace

void emit_step(Emission& to, const Convolution& layer) { LayerWriter(to, to.program, layer).write(); }

}  // namespace reef::emit

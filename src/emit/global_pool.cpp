// SPDX-License-Identifier: Apache-2.0
// The average of all pixels, each tile for its channels, which relayout.cpp has gathered.
//
//   narrow memory -> narrow_to_wide, transposed -> lines: four pixels of 64 channels -> multiply_add: sums
//
// Pixels become parameters, one channel to a cell and four pixels to its four lanes; a step multiplies one of them with
// the constant 1. Where a row of the image is not a multiple of four pixels wide, a line also has some of what lies
// behind it, which no step uses.
// The waits of the transposing move are those of Google's compiler for pools that follow a convolution; here they hold
// always, because a fence has set the counters to 0.
//
// How it is known: Google's newest compiler's instructions, row for row, on whole networks
// (docs/hardware/google_heads.md#global-pool), with channels that are whole runs. A last tile with fewer channels is
// our own.
#include "emit/blocks.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

constexpr std::int32_t kPixelsPerLine = chip::kLanesPerCell;

class PoolWriter : BlockWriter {
 public:
  PoolWriter(Emission& to, const tiled::GlobalPool& step)
      : BlockWriter(to),
        step_(step),
        image_(to.program.tensor(step.input)),
        output_(to.program.tensor(step.output)),
        gathered_(to.program.address_of(step.gathered) / kWord),
        one_(to.program.address_of(step.words) / kWord + tiled::kRelayWords),
        lines_(to.program.line_of(step.lines)),
        row_lines_((image_.width + kPixelsPerLine - 1) / kPixelsPerLine) {}

  void write() {
    namespace m = isa::mesh;
    // Seen in the one network with fewer pixels than tiles along an axis.
    const int fences = image_.width < tiled::kTilesPerAxis || image_.height < tiled::kTilesPerAxis ? 2 : 1;
    for (int i = 0; i < fences; ++i) writer_.tile_fence(kAllUnits, kCountersOfTiles);
    const std::vector<Part> parts = parts_of_tiles();
    TileMask tiles = 0;
    for (const Part& part : parts) tiles |= part.tiles;
    writer_.add(Draft(Opcode::kMeshNorth)
                    .tiles(tiles)
                    .nest(m::kOut, LoopNest(one_, {{1, 1, false}}))
                    .set(m::kFill)
                    .set(m::kFillValue, 1));
    writer_.tile_fence(kAllUnits, 0);
    for (const Part& part : parts) transpose(part);
    writer_.tile_fence(kAllUnits, 0);
    for (const Part& part : parts) average(part);
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  // Groups of 64 channels, or one of fewer, that some tiles have.
  struct Part {
    TileMask tiles = 0;
    std::int32_t first_group = 0, groups = 1, words = kGroupWords;
  };
  std::vector<Part> parts_of_tiles() const {
    const tiled::ChannelRuns& runs = step_.runs;
    std::vector<Part> parts;
    for_each_class(
        tiled::kAllTiles, [&](int tile) { return runs.words_of(tile); },
        [&](TileMask tiles, std::int32_t words) {
          const std::int32_t whole = words / kGroupWords, rest = words % kGroupWords;
          if (whole > 0) parts.push_back({tiles, 0, whole, kGroupWords});
          if (rest > 0) parts.push_back({tiles, whole, 1, rest});
        });
    return parts;
  }
  std::int32_t group_lines() const { return row_lines_ * image_.height; }

  void transpose(const Part& part) {
    namespace m = isa::movers;
    const std::int64_t pitch = step_.runs.pitch_words(), groups = part.groups;
    std::vector<Dim> dims = {step(pitch, kPixelsPerLine), step(1, part.words)};
    if (row_lines_ > 1) dims.push_back(step(kPixelsPerLine * pitch, row_lines_));
    if (image_.height > 1) dims.push_back(step(image_.width * pitch, image_.height));
    const int level = static_cast<int>(dims.size());
    std::vector<Dim> lines = {step(1, group_lines())};
    if (groups > 1) {
      dims.push_back(step(kGroupWords, groups));
      lines.push_back(step(group_lines(), groups));
    }
    Draft draft(Opcode::kNarrowToWide);
    draft.tiles(part.tiles)
        .nest(m::kToWideIn, LoopNest(gathered_ + std::int64_t{part.first_group} * kGroupWords, dims))
        .nest(m::kToWideOut, LoopNest(first_line(part), lines))
        .set(m::kToWideLineLevel, 2)
        .set(m::kTranspose)
        .signal(m::kSignalNarrowToWide, 1);
    const std::int64_t all_groups = std::int64_t{step_.runs.tiles} * (step_.runs.run_words / kGroupWords);
    for (const TileCounter counter : {TileCounter::kAvdata, TileCounter::kMeshEastIn, TileCounter::kMeshWestIn,
                                      TileCounter::kMeshSouthIn, TileCounter::kMeshNorthIn}) {
      draft.wait(counter, {level, 1 - all_groups, 1});
    }
    writer_.add(draft);
  }
  std::int32_t first_line(const Part& part) const { return lines_ + part.first_group * group_lines(); }

  void average(const Part& part) {
    namespace t = isa::tensor_op;
    const std::int64_t width = image_.width, height = image_.height, groups = part.groups;
    const std::int64_t run = std::int64_t{step_.runs.run_words} * kWord, cells = std::int64_t{part.words} * kWord;
    const std::int64_t quarters = chip::kWideAddressUnitsPerLine, stride = step_.stride;
    std::vector<Dim> in = {repeat(width), repeat(height), step(kWord, 1), step(kWord, 1)};
    std::vector<Dim> sums = {repeat(width * height)};
    if (groups > 1) {
      in.push_back(repeat(groups));
      sums.push_back(repeat(groups));
    }
    const std::int64_t per_row = quarters * row_lines_, per_group = quarters * group_lines();
    writer_.add(Draft(Opcode::kMultiplyAdd)
                    .tiles(part.tiles)
                    .loops({width, height, 1, 1, groups})
                    .nest(t::kIn, LoopNest(one_ * kWord, in))
                    .nest(t::kOut, LoopNest(output_.address + std::int64_t{part.first_group} * chip::kCells,
                                            {step(kWord, part.words), step(run, 1), step(run, 1),
                                             step(chip::kCells, groups), step(run, 1)}))
                    .nest(t::kParam,
                          LoopNest(first_line(part) * quarters,
                                   {step(1, width), step(per_row, height), step(stride, 1), step(stride * per_row, 1),
                                    step(per_group, groups), step(per_group * groups, 1)}))
                    .nest(t::kPsum, LoopNest(0, sums))
                    .set(t::kPsumGroupLevel, 1)
                    .sums_inside()
                    .set(t::kIn16)
                    .set(t::kLanesOff, 6)
                    .set(t::kParamZero, image_.zero_point)
                    .set(t::kScalingLevel, 4)
                    .set(t::kReduceDims, 3)
                    .cells(cells)
                    .set_float(t::kScale, step_.multiplier)
                    .set_float(t::kMax, step_.clamp.max)
                    .set_float(t::kMin, step_.clamp.min)
                    .set(t::kOutZero, output_.zero_point)
                    .signal(t::kSignalAvdata, 3)
                    .signal(t::kSignalParameters, 4));
  }

  const tiled::GlobalPool& step_;
  const TiledTensor& image_;
  const TiledTensor& output_;
  const std::int64_t gathered_, one_;
  const std::int32_t lines_;
  const std::int32_t row_lines_;  // of a row of the image
};

}  // namespace

void emit_step(Emission& to, const tiled::GlobalPool& step) { PoolWriter(to, step).write(); }

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// The average or the maximum of the pixels under a window.
//
//   narrow_to_wide   pixels become parameters: four neighbours in a row and 64 channels to a line, transposed, so that
//                    a cell has the four bytes of one channel. Parameters are addressed by quarters of a line, which
//                    are pixels then
//   maximum          of the parameters of a window
//   multiply_add     averages: parameters times ones, scaled by one over their number
// Windows that reach over the border of the image take only what lies inside. Results with the same part of their
// windows inside form rectangles, each with an instruction of its own.
//
// Waits: none between units, fences part them; the halo of the result is exchanged group by group of channels where one
// instruction makes it, or when all is done. Only the words of 1 are written before the first fence, while the step
// before may still be running.
//
// How it is known: as Google's newest compiler writes pools without padding (docs/hardware/google_programs.md#pools),
// which have one round and one rectangle. Several of either are our own: Google's way for windows over the border of
// the image is to make the padding real for maxima, and not known for averages.
#include <algorithm>

#include "base/divide_up.h"
#include "emit/blocks.h"
#include "emit/regions.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace t = isa::tensor_op;

using tiled::Pool;

// Outputs in a row that see the same part of their windows: taps [first_tap, end_tap) of each lie inside of the image.
struct Run {
  std::int32_t begin = 0, end = 0;
  std::int32_t first_tap = 0, end_tap = 0;
  std::int32_t outputs() const { return end - begin; }
  std::int32_t taps() const { return end_tap - first_tap; }
};

std::vector<Run> runs_of(const tiled::Window& window, std::int32_t begin, std::int32_t end, std::int32_t image_first,
                         std::int32_t image_end) {
  std::vector<Run> runs;
  for (std::int32_t o = begin; o < end; ++o) {
    const std::int32_t first = window.first(o);
    const Run run{o, o + 1, std::max(0, image_first - first), std::min(window.kernel, image_end - first)};
    if (!runs.empty() && runs.back().first_tap == run.first_tap && runs.back().end_tap == run.end_tap) {
      runs.back().end = run.end;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

class PoolWriter : BlockWriter {
 public:
  PoolWriter(Emission& to, const Pool& pool)
      : BlockWriter(to),
        pool_(pool),
        input_(to.program.tensor(pool.input)),
        output_(to.program.tensor(pool.output)),
        first_line_(to.program.line_of(pool.lines)),
        words_(input_.pixel_words()) {
    for (int t = 0; t < chip::kTiles; ++t) {
      before_[at(t)] = writer_.total(TileCounter::kAvdata, t);
    }
  }

  void write() {
    if (pool_.is_average && pool_.factors == tiled::kNowhere) {
      namespace m = isa::mesh;
      writer_.add(Draft(Opcode::kMeshNorth)
                      .tiles(output_.owners())
                      .nest(m::kOut, LoopNest(program_.address_of(pool_.ones) / kWord,
                                              {{1, pool_.one_words, pool_.one_words > 1}}))
                      .set(m::kFill)
                      .set(m::kFillValue, 1));
    }
    const std::int32_t rows = output_.rows.max_own(), groups = divide_up(words_, kGroupWords);
    for (std::int32_t group = 0; group < groups; group += pool_.groups_at_once) {
      for (std::int32_t row = 0; row < rows; row += pool_.rows_at_once) {
        round({group, std::min(pool_.groups_at_once, groups - group), row, pool_.rows_at_once});
      }
    }
    exchange();
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  struct Round {
    std::int32_t first_group, groups;
    std::int32_t first_row, rows;  // of the result, from a tile's first on; tiles may have fewer
  };
  // What a tile reads in a round.
  struct Source {
    std::int32_t y = 0, x = 0;  // first pixel, of the image
    std::int32_t rows = 0, blocks = 0;
    std::int32_t begin = 0, end = 0;  // rows of the result
    std::int32_t lines() const { return rows * blocks; }
  };

  Source source_of(const Round& round, int tile) const {
    const tiled::TileShare& rows = output_.rows.tile(chip::tile_row(tile));
    const tiled::TileShare& columns = output_.columns.tile(chip::tile_column(tile));
    Source source;
    source.begin = std::min(rows.begin + round.first_row, rows.end);
    source.end = std::min(source.begin + round.rows, rows.end);
    source.y = pool_.y.first(source.begin);
    source.x = pool_.x.first(columns.begin);
    source.rows = (source.end - source.begin - 1) * pool_.y.stride + pool_.y.kernel;
    source.blocks = divide_up((columns.own() - 1) * pool_.x.stride + pool_.x.kernel, tiled::kPoolLinePixels);
    return source;
  }
  TileMask tiles_of(const Round& round) const {
    TileMask tiles = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      const Source source = source_of(round, t);
      if ((output_.owners() & tiled::mask_of(t)) != 0 && source.begin < source.end) tiles |= tiled::mask_of(t);
    }
    return tiles;
  }

  void round(const Round& round) {
    const TileMask tiles = tiles_of(round);
    const std::int32_t last_words = words_ - (round.first_group + round.groups - 1) * kGroupWords;
    const bool last_is_short = last_words < kGroupWords;
    writer_.tile_fence(kAllUnits, 0);
    const std::int32_t whole_groups = round.groups - (last_is_short ? 1 : 0);
    if (whole_groups > 0) {
      add_each(writer_, tiles, [&](int tile) { return pixels_to_lines(round, tile, 0, whole_groups, kGroupWords); });
    }
    if (last_is_short) {
      add_each(writer_, tiles, [&](int tile) { return pixels_to_lines(round, tile, whole_groups, 1, last_words); });
    }
    writer_.tile_fence(kAllUnits, 0);
    // Tiles have different numbers of rectangles: the first of all, then the second ...
    for (std::size_t rectangle = 0;; ++rectangle) {
      TileMask left = 0;
      for (int t = 0; t < chip::kTiles; ++t) {
        if ((tiles & tiled::mask_of(t)) != 0 && rectangle < rectangles_of(round, t).size()) left |= tiled::mask_of(t);
      }
      if (left == 0) break;
      if (rectangle > 0) in_one_go_ = false;
      add_each(writer_, left,
               [&](int tile) { return window_work(round, tile, rectangles_of(round, tile)[rectangle]); });
    }
    if (round.groups != divide_up(words_, kGroupWords) || round.rows < output_.rows.max_own()) in_one_go_ = false;
  }

  Draft pixels_to_lines(const Round& round, int tile, std::int32_t group, std::int32_t groups,
                        std::int32_t words) const {
    namespace m = isa::movers;
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const Source source = source_of(round, tile);
    const std::int32_t pixel = input_.pitch / kWord, row_words = input_.row_bytes(column) / kWord;
    const std::int32_t first =
        input_.byte_of(row, column, source.y, source.x) / kWord + (round.first_group + group) * kGroupWords;
    std::vector<Dim> pixels = {step(pixel, tiled::kPoolLinePixels)};
    if (words > 1) pixels.push_back(step(1, words));
    const int line_level = static_cast<int>(pixels.size());
    if (source.blocks > 1) pixels.push_back(step(tiled::kPoolLinePixels * pixel, source.blocks));
    if (source.rows > 1) pixels.push_back(step(row_words, source.rows));
    const int group_level = static_cast<int>(pixels.size());
    std::vector<Dim> lines = {step(1, source.lines())};
    if (groups > 1) {
      pixels.push_back(step(kGroupWords, groups));
      lines.push_back(step(source.lines(), groups));
    }
    Draft draft(Opcode::kNarrowToWide);
    draft.nest(m::kToWideIn, LoopNest(first, pixels))
        .nest(m::kToWideOut, LoopNest(first_line_ + group * source.lines(), lines))
        .set(m::kTranspose)
        .set(m::kToWideLineLevel, line_level)
        .signal(m::kSignalNarrowToWide, 1);
    // Google's, where all groups are whole. The fence has seen to it.
    if (program_.level == tiled::Level::kAsGoogle && words_ % kGroupWords == 0) {
      for (const TileCounter counter : {TileCounter::kAvdata, TileCounter::kMeshEastIn, TileCounter::kMeshWestIn,
                                        TileCounter::kMeshSouthIn, TileCounter::kMeshNorthIn}) {
        draft.wait(counter, {group_level, writer_.total(counter, tile) - (groups - 1), 1});
      }
    }
    return draft;
  }

  struct Rectangle {
    Run rows, columns;
  };
  std::vector<Rectangle> rectangles_of(const Round& round, int tile) const {
    const Source source = source_of(round, tile);
    const tiled::TileShare& columns = output_.columns.tile(chip::tile_column(tile));
    std::vector<Rectangle> rectangles;
    for (const Run& y :
         runs_of(pool_.y, source.begin, source.end, pool_.image_top, pool_.image_top + pool_.image_height)) {
      for (const Run& x :
           runs_of(pool_.x, columns.begin, columns.end, pool_.image_left, pool_.image_left + pool_.image_width)) {
        rectangles.push_back({y, x});
      }
    }
    return rectangles;
  }

  Draft window_work(const Round& round, int tile, const Rectangle& part) const {
    const int row = chip::tile_row(tile), column = chip::tile_column(tile);
    const Source source = source_of(round, tile);
    const std::int64_t kx = part.columns.taps(), ky = part.rows.taps();
    const std::int64_t columns = part.columns.outputs(), rows = part.rows.outputs(), groups = round.groups;
    const std::int64_t line = std::int64_t{chip::kWideAddressUnitsPerLine} * source.blocks;  // of a row of pixels
    const std::int64_t all_lines = std::int64_t{chip::kWideAddressUnitsPerLine} * source.lines();
    const std::int32_t first_y = pool_.y.first(part.rows.begin) + part.rows.first_tap - source.y;
    const std::int32_t first_x = pool_.x.first(part.columns.begin) + part.columns.first_tap - source.x;
    const std::int64_t first = std::int64_t{first_line_} * chip::kWideAddressUnitsPerLine + first_y * line + first_x;
    const std::int32_t words = std::min(kGroupWords, words_), cells = words * kWord;
    const std::int32_t last_cells =
        std::min(cells, (words_ - (round.first_group + round.groups - 1) * kGroupWords) * kWord);
    std::vector<std::int64_t> loops = {kx, ky, columns, rows};
    if (groups > 1) loops.push_back(groups);
    std::vector<Dim> sums = {repeat(kx * ky)};
    for (const std::int64_t count : few_counts({columns * rows, groups}, kMostParameterSteps)) {
      sums.push_back(repeat(count));
    }
    const Region buffer = own_region(output_, tile);
    LoopNest out(output_.byte_of(row, column, part.rows.begin, part.columns.begin) + round.first_group * chip::kCells,
                 {step(kWord, words), step(output_.pitch, columns), step(buffer.row_bytes, rows), step(cells, groups),
                  step(buffer.buffer_bytes, 1)});
    if (groups > 1) out.clip(3, last_cells / kWord);
    Draft draft(pool_.is_average ? Opcode::kMultiplyAdd : Opcode::kMaximum);
    draft.loops(loops)
        .nest(t::kOut, out)
        .nest(t::kParam, LoopNest(first, {step(1, kx), step(line, ky), step(pool_.x.stride, columns),
                                          step(line * pool_.y.stride, rows), step(all_lines, groups),
                                          step(all_lines * groups, 1)}))
        .nest(t::kPsum, LoopNest(0, sums))
        .signal(t::kSignalAvdata, 3)
        .signal(t::kSignalParameters, 4)
        .sums_inside()
        .set(t::kPsumGroupLevel, 1)
        .set(t::kReduceDims, 3)
        .set(t::kScalingLevel, 4)
        .cells(cells, groups > 1 ? last_cells : cells)
        .set_float(t::kMax, pool_.clamp.max)
        .set_float(t::kMin, pool_.clamp.min)
        .set(t::kOutZero, pool_.output_zero);
    if (pool_.is_average) {
      set_average(draft, tile, part, groups);
    } else {
      draft.set(t::kLanesOff, 7)
          .set(t::kInZero, pool_.input_zero)
          .set(t::kConstant, -pool_.input_zero)
          .set_float(t::kScale, pool_.input_scale * (1.0f / pool_.output_scale));
    }
    return draft;
  }

  void set_average(Draft& draft, int tile, const Rectangle& part, std::int64_t groups) const {
    const std::int64_t kx = part.columns.taps(), ky = part.rows.taps();
    draft.nest(t::kIn, pool_.factors == tiled::kNowhere ? ones(part, groups) : factors(tile, part, groups))
        .set(t::kIn16)
        .set(t::kLanesOff, 6)
        .set(t::kParamZero, pool_.input_zero)
        .set_float(t::kScale, pool_.multiplier
                                  ? *pool_.multiplier
                                  : numeric::chip_pool_multiplier(pool_.input_scale, pool_.output_scale,
                                                                  static_cast<std::int32_t>(kx * ky), pool_.order));
  }
  LoopNest ones(const Rectangle& part, std::int64_t groups) const {
    const std::int64_t pixels = std::int64_t{part.columns.outputs()} * part.rows.outputs();
    std::vector<Dim> dims = {repeat(part.columns.taps()), repeat(part.rows.taps())};
    dims.push_back(pool_.one_words >= pixels ? step(kWord, pixels) : repeat(pixels));
    if (groups > 1) {
      dims.push_back(repeat(groups));
    } else {
      dims.push_back(step(kWord * pixels, 1));
    }
    return {program_.address_of(pool_.ones), dims};
  }
  // Of single pixels: their taps are 1.
  LoopNest factors(int tile, const Rectangle& part, std::int64_t groups) const {
    const tiled::TileShare& rows = output_.rows.tile(chip::tile_row(tile));
    const tiled::TileShare& columns = output_.columns.tile(chip::tile_column(tile));
    const std::int64_t row_bytes = std::int64_t{tiled::kPixelFactorBytes} * columns.own();
    const std::int64_t first = (part.rows.begin - rows.begin) * row_bytes +
                               std::int64_t{tiled::kPixelFactorBytes} * (part.columns.begin - columns.begin);
    return {program_.address_of(pool_.factors) + first,
            {repeat(1), repeat(1), step(tiled::kPixelFactorBytes, part.columns.outputs()),
             step(row_bytes, part.rows.outputs()), repeat(groups)}};
  }

  void exchange() {
    OwnPixels own;
    own.increment = in_one_go_ ? 1 : 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      own.first[at(t)] = in_one_go_ ? before_[at(t)] + 1 : writer_.total(TileCounter::kAvdata, t);
    }
    exchange_halo(writer_, output_, &own);
  }

  const Pool& pool_;
  const TiledTensor& input_;
  const TiledTensor& output_;
  const std::int32_t first_line_;
  const std::int32_t words_;  // of a pixel
  std::array<std::int64_t, chip::kTiles> before_{};
  bool in_one_go_ = true;  // one instruction makes all of a tile's results
};

}  // namespace

void emit_step(Emission& to, const Pool& pool) { PoolWriter(to, pool).write(); }

}  // namespace reef::emit

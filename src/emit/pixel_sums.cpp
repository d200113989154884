// SPDX-License-Identifier: Apache-2.0
// Averages of whole images by sums, in two blocks.
//
//   PixelSums    four pixels at a time, transposed, become parameters: one channel to a cell, a pixel to each of its
//                lanes; multiplied by the constant 1 and added up: sums of 16 bits
//   SummedPool   the same with sums in the place of pixels, two at a time; the total is brought to the result's scale
//
// Both take 64 channels after the other. Lines of parameters are used in turn: those of a row of pixels (or of all
// sums) are written while the ones before are used. Waits: narrow_to_wide for PARAMETERS, the lines before last are
// used; multiply_add for NARROW_TO_WIDE, the lines are there.
// Pixels behind the end of a row, which complete a line of four, are read but not used.
//
// How it is known: the operations are those of Google's pools (16-bit constant times parameters) and of its SOFTMAX
// (16-bit parameters); that they are put together so is our own. Sums are exact, so the result is that of one sum.
#include "emit/blocks.h"
#include "emit/regions.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

namespace m = isa::movers;
namespace t = isa::tensor_op;

constexpr std::int64_t kPixelsPerLine = chip::kLanesPerCell, kSumsPerLine = 2;

// Groups of 64 channels, or one of fewer.
struct Part {
  std::int64_t first_word = 0, groups = 1, words = kGroupWords;
};
std::vector<Part> parts_of(std::int64_t words) {
  std::vector<Part> parts;
  const std::int64_t whole = words / kGroupWords, rest = words % kGroupWords;
  if (whole > 0) parts.push_back({0, whole, kGroupWords});
  if (rest > 0) parts.push_back({whole * kGroupWords, 1, rest});
  return parts;
}

void fill_one(ProgramWriter& writer, std::int64_t byte) {
  namespace mesh = isa::mesh;
  writer.tile_fence(kAllUnits, kCountersOfTiles);
  writer.add(Draft(Opcode::kMeshNorth)
                 .tiles(tiled::kAllTiles)
                 .nest(mesh::kOut, LoopNest(byte / kWord, {step(1, 1)}))
                 .set(mesh::kFill)
                 .set(mesh::kFillValue, 1));
  writer.tile_fence(kAllUnits, 0);
}

// What comes as parameters: `rows` times `row_lines` lines, in turn.
Draft to_lines_in_turn(std::int64_t word, const std::vector<Dim>& dims, std::int64_t line, std::int64_t row_lines,
                       std::int64_t rows, std::int64_t used) {
  Draft draft(Opcode::kNarrowToWide);
  draft.nest(m::kToWideIn, LoopNest(word, dims))
      .nest(m::kToWideOut, LoopNest(line, {step(1, row_lines), repeat(rows)}).swap(1, row_lines))
      .set(m::kToWideLineLevel, 2)
      .set(m::kTranspose)
      .wait(TileCounter::kParameters, {1, used - 1, 1}, Gate::kWriting)
      .signal(m::kSignalNarrowToWide, 1);
  return draft;
}

// A sum for each pass of `summed` loops, of `cells` channels.
Draft sums_of_lines(const std::vector<std::int64_t>& loops, int summed, std::int64_t one, std::int64_t cells,
                    std::int64_t filled) {
  std::vector<Dim> still;
  for (const std::int64_t count : loops) still.push_back(repeat(count));
  Draft draft(Opcode::kMultiplyAdd);
  draft.loops(loops)
      .nest(t::kIn, LoopNest(one, still))
      .nest(t::kPsum, LoopNest(0, still))
      .set(t::kPsumGroupLevel, summed)
      .sums_inside()
      .set(t::kIn16)
      .set(t::kScalingLevel, static_cast<int>(loops.size()))
      .cells(cells)
      .wait(TileCounter::kNarrowToWide, {1, filled + 1, 1})
      .signal(t::kSignalParameters, 1);
  return draft;
}

class PixelSumWriter : BlockWriter {
 public:
  PixelSumWriter(Emission& to, const tiled::PixelSums& step)
      : BlockWriter(to),
        image_(to.program.tensor(step.input)),
        sums_(to.program.address_of(step.sums)),
        one_(to.program.address_of(step.one)),
        line_(to.program.line_of(step.lines)) {}

  void write() {
    fill_one(writer_, one_);
    for (const Part& part : parts_of(image_.pixel_words())) {
      add_each(writer_, image_.owners(), [&](int tile) { return pixels(tile, part); });
      add_each(writer_, image_.owners(), [&](int tile) { return sums(tile, part); });
    }
  }

 private:
  static std::int64_t row_lines(const Region& region) { return (region.columns + kPixelsPerLine - 1) / kPixelsPerLine; }

  Draft pixels(int tile, const Part& part) const {
    const Region region = own_region(image_, tile);
    const std::int64_t pitch = region.pitch / kWord, lines = row_lines(region);
    return to_lines_in_turn(region.first_byte / kWord + part.first_word,
                            {step(pitch, kPixelsPerLine), step(1, part.words), step(kPixelsPerLine * pitch, lines),
                             step(region.row_bytes / kWord, region.rows), step(kGroupWords, part.groups)},
                            line_, lines, region.rows * part.groups, writer_.total(TileCounter::kParameters, tile));
  }

  // The lines of these sums are queued already.
  Draft sums(int tile, const Part& part) const {
    const Region region = own_region(image_, tile);
    const std::int64_t rows = tiled::rows_per_sum(region.rows, region.columns), count = region.rows / rows;
    const std::int64_t size = kWord * tiled::sum_words(image_), all_rows = region.rows * part.groups;
    Draft draft = sums_of_lines({region.columns, rows, count, part.groups}, 2, one_, part.words * kWord,
                                writer_.total(TileCounter::kNarrowToWide, tile) - all_rows);
    draft
        .nest(t::kOut, LoopNest(sums_ + 2 * kWord * part.first_word,
                                {step(kWord, 2 * part.words), step(size, count), step(2 * chip::kCells, part.groups)}))
        .nest(t::kParam, LoopNest(line_ * kQuarters, {step(1, region.columns), repeat(all_rows)})
                             .swap(1, kQuarters * row_lines(region)))
        .set(t::kLanesOff, 6)
        .set(t::kOut16)
        .set_float(t::kScale, 1.0f)
        .set_float(t::kMax, 65535.0f)
        .set_float(t::kMin, 0.0f);
    return draft;
  }

  const TiledTensor& image_;
  const std::int64_t sums_, one_, line_;
};

}  // namespace

void emit_step(Emission& to, const tiled::PixelSums& step) { PixelSumWriter(to, step).write(); }

void emit_step(Emission& to, const tiled::SummedPool& pool) {
  ProgramWriter& writer = to.writer;
  const TiledTensor &image = to.program.tensor(pool.input), &output = to.program.tensor(pool.output);
  const std::int64_t gathered = to.program.address_of(pool.gathered) / kWord, one = to.program.address_of(pool.one);
  const std::int64_t line = to.program.line_of(pool.lines), size = tiled::sum_words(image);
  const int tile = 0;  // all are alike
  fill_one(writer, one);
  for (const Part& part : parts_of(image.pixel_words())) {
    const std::int64_t used = writer.total(TileCounter::kParameters, tile);
    const std::int64_t filled = writer.total(TileCounter::kNarrowToWide, tile);
    writer.add(to_lines_in_turn(gathered + 2 * part.first_word,
                                {step(size, kSumsPerLine), step(1, 2 * part.words),
                                 step(kSumsPerLine * size, pool.group_lines()), step(2 * kGroupWords, part.groups)},
                                line, pool.group_lines(), part.groups, used)
                   .tiles(output.tiles)
                   .set(m::kTransposeHalves));
    Draft draft = sums_of_lines({pool.sums, part.groups}, 1, one, part.words * kWord, filled);
    writer.add(draft.tiles(output.tiles)
                   .nest(t::kOut, LoopNest(output.address + kWord * part.first_word,
                                           {step(kWord, part.words), step(chip::kCells, part.groups)}))
                   .nest(t::kParam, LoopNest(line * kQuarters, {step(2, pool.sums), repeat(part.groups)})
                                        .swap(1, kQuarters * pool.group_lines()))
                   .set(t::kParam16)
                   .set(t::kConstant, pool.offset)
                   .set_float(t::kScale, pool.multiplier)
                   .set_float(t::kMax, pool.clamp.max)
                   .set_float(t::kMin, pool.clamp.min)
                   .set(t::kOutZero, output.zero_point));
  }
}

}  // namespace reef::emit

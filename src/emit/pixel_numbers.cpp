// SPDX-License-Identifier: Apache-2.0
// An image and one number for each of its pixels: their product, or their weighted sum.
//
// The tensor unit gives all 64 cells the same input. So the image becomes parameters, a channel to a cell, as in pools,
// and 64 channels of a pixel take one step, where an operand that is the input takes one for every four channels:
//
//   narrow_to_wide   four pixels and 64 channels to a line, transposed: a cell has four pixels of its channel.
//                    Parameters are addressed by quarters of a line, which are pixels then
//   products         multiply_add with the pixel's number as the only byte of the input
//   sums             the numbers become lines as well, the same number in all cells. multiply_add takes two steps, one
//                    for each operand, with its weight of 16 bits as the input
//
// Lines of a row of pixels lie together: those of the numbers, then those of the image.
//
// Waits: a fence at the beginning, behind which all operands are there, counters are 0 and lines are free.
// multiply_add waits for NARROW_TO_WIDE before each row of pixels (its lines are there), and for the mesh, which writes
// the weights. Rounds are parted by fences. The halo of the result is exchanged when all is done.
// Pixels behind the end of a row, which complete a line of four, are read but not used.
//
// How it is known: our own. Each instruction is used in a way that Google's programs have: transposed pixels as
// parameters and 16-bit inputs in averages, single bytes by a quarter of a line where MUL packs its results.
#include <algorithm>

#include "base/divide_up.h"
#include "emit/blocks.h"
#include "emit/regions.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"
#include "tiled/pool.h"

namespace reef::emit {
namespace {

namespace m = isa::movers;
namespace t = isa::tensor_op;

constexpr std::int32_t kLinePixels = tiled::kPoolLinePixels;

class PixelNumberWriter : BlockWriter {
 public:
  PixelNumberWriter(Emission& to, const tiled::PixelNumbers& step)
      : BlockWriter(to),
        step_(step),
        input_(to.program.tensor(step.input)),
        numbers_(to.program.tensor(step.numbers)),
        output_(to.program.tensor(step.output)),
        weights_(step.is_product ? 0 : to.program.address_of(step.weights)),
        first_line_(to.program.line_of(step.lines)),
        groups_(divide_up(output_.pixel_words(), kGroupWords)) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    if (!step_.is_product) write_weights();
    if (step_.sum.function) load_table(writer_, step_.sum.function->table, output_.owners());
    const std::int32_t rows = output_.rows.max_own();
    for (std::int32_t group = 0; group < groups_; group += step_.groups_at_once) {
      for (std::int32_t row = 0; row < rows; row += step_.rows_at_once) {
        if (group + row > 0) writer_.tile_fence(kAllUnits, 0);
        round({group, std::min(step_.groups_at_once, groups_ - group), row});
      }
    }
    if (output_.has_halo()) {
      writer_.tile_fence(kAllUnits, 0);
      exchange_halo(writer_, output_, nullptr);
    }
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

 private:
  struct Round {
    std::int32_t first_group, groups;
    std::int32_t first_row;  // from a tile's first on; tiles may have fewer
  };
  // The work of a tile in one round.
  struct Share {
    Region input, numbers, output;
    std::int32_t rows = 0;
    std::int32_t blocks = 0;  // lines of a row of pixels, of one operand
  };

  std::int32_t rows_of(const Round& round, int tile) const {
    if ((output_.owners() & tiled::mask_of(tile)) == 0) return 0;
    return std::min(own_region(output_, tile).rows - round.first_row, step_.rows_at_once);
  }
  Share share_of(const Round& round, int tile) const {
    Share share{region_of(input_, output_, tile), region_of(numbers_, output_, tile), own_region(output_, tile)};
    for (Region* region : {&share.input, &share.numbers, &share.output}) {
      region->first_byte += round.first_row * region->row_bytes;
    }
    share.rows = rows_of(round, tile);
    share.blocks = divide_up(share.output.columns, kLinePixels);
    return share;
  }

  void write_weights() {
    namespace mesh = isa::mesh;
    const std::int32_t zero = weight_zero();
    const auto low = static_cast<std::uint32_t>(step_.sum.b_weight + zero);
    const auto high = static_cast<std::uint32_t>(step_.sum.a_weight + zero);
    Draft fill(Opcode::kMeshNorth);
    fill.tiles(tiled::kAllTiles)
        .nest(mesh::kOut, LoopNest(weights_ / kWord, {{1, 1, false}}))
        .signal(mesh::producers(Opcode::kMeshNorth)[1], 1)
        .set(mesh::kFill)
        .set(mesh::kFillValue, low | high << 16);
    writer_.add(std::move(fill));
  }
  // Inputs are unsigned: negative weights are had by a zero point.
  std::int32_t weight_zero() const { return std::max({0, -step_.sum.a_weight, -step_.sum.b_weight}); }

  void round(const Round& round) {
    TileMask tiles = 0;
    for (int tile = 0; tile < chip::kTiles; ++tile) {
      if (rows_of(round, tile) > 0) tiles |= tiled::mask_of(tile);
    }
    // Waits must not see the totals of this round, so all instructions are drafted before any is added.
    std::vector<Draft> drafts;
    if (!step_.is_product) {
      add_each(drafts, tiles, [&](int tile) { return numbers_to_lines(round, tile); });
    }
    const std::vector<Part> parts = parts_of(round);
    for (const Part& part : parts) {
      add_each(drafts, tiles, [&](int tile) { return image_to_lines(round, tile, part); });
    }
    for (const Part& part : parts) {
      add_each(drafts, tiles, [&](int tile) { return combine(round, tile, part); });
    }
    for (Draft& draft : drafts) writer_.add(std::move(draft));
  }

  // Groups of 64 channels, and the last if it has fewer: each with instructions of its own.
  struct Part {
    std::int32_t first = 0, groups = 1;  // of the round's groups
    std::int32_t words = kGroupWords;    // of the channels of a group
  };
  std::vector<Part> parts_of(const Round& round) const {
    const std::int32_t words = output_.pixel_words() - round.first_group * kGroupWords;
    const std::int32_t whole = std::min(round.groups, words / kGroupWords);
    std::vector<Part> parts;
    if (whole > 0) parts.push_back({0, whole, kGroupWords});
    if (whole < round.groups) parts.push_back({whole, 1, words - whole * kGroupWords});
    return parts;
  }

  // From line to line of rows of pixels, of all groups: the lines of a row's operands lie together.
  std::int64_t row_lines(const Share& share) const { return std::int64_t{step_.terms()} * share.blocks; }

  Draft to_lines(const Share& share, std::int64_t line, std::int32_t groups) const {
    Draft draft(Opcode::kNarrowToWide);
    draft
        .nest(m::kToWideOut,
              LoopNest(line, {step(1, share.blocks), step(row_lines(share), std::int64_t{share.rows} * groups)}))
        .set(m::kToWideLineLevel, 2)
        .set(m::kTranspose)
        .signal(m::kSignalNarrowToWide, 1);
    return draft;
  }

  Draft numbers_to_lines(const Round& round, int tile) const {
    const Share share = share_of(round, tile);
    const std::int64_t pitch = share.numbers.pitch / kWord;
    Draft draft = to_lines(share, first_line_, round.groups);
    draft.nest(m::kToWideIn, LoopNest(share.numbers.first_byte / kWord,
                                      {step(pitch, kLinePixels), repeat(std::min(kGroupWords, output_.pixel_words())),
                                       step(kLinePixels * pitch, share.blocks),
                                       step(share.numbers.row_bytes / kWord, share.rows), repeat(round.groups)}));
    return draft;
  }

  // Lines of a part of the round's groups begin so many lines behind the first.
  std::int64_t lines_before(const Share& share, const Part& part) const {
    return std::int64_t{part.first} * share.rows * row_lines(share);
  }

  Draft image_to_lines(const Round& round, int tile, const Part& part) const {
    const Share share = share_of(round, tile);
    const std::int64_t pitch = share.input.pitch / kWord;
    const std::int64_t before = lines_before(share, part) + (step_.terms() - 1) * share.blocks;
    Draft draft = to_lines(share, first_line_ + before, part.groups);
    draft.nest(m::kToWideIn,
               LoopNest(share.input.first_byte / kWord + (round.first_group + part.first) * kGroupWords,
                        {step(pitch, kLinePixels), step(1, part.words), step(kLinePixels * pitch, share.blocks),
                         step(share.input.row_bytes / kWord, share.rows), step(kGroupWords, part.groups)}));
    return draft;
  }

  // A product takes the number of the pixel, a sum the weights of the operands.
  LoopNest inputs(const Share& share, std::int64_t groups) const {
    const Region& numbers = share.numbers;
    if (step_.is_product) {
      return {numbers.first_byte,
              {repeat(1), step(numbers.pitch, numbers.columns), step(numbers.row_bytes, share.rows), repeat(groups)}};
    }
    return {weights_, {step(2, 2), repeat(numbers.columns), repeat(share.rows), repeat(groups)}};
  }

  Draft combine(const Round& round, int tile, const Part& part) const {
    const Share share = share_of(round, tile);
    const Region& out = share.output;
    const std::int64_t terms = step_.terms(), columns = out.columns, rows = share.rows, groups = part.groups;
    const std::int64_t row_quarters = kQuarters * row_lines(share);
    // The numbers' lines come first, then those of the image, row by row of each group.
    const std::int64_t filled =
        writer_.total(TileCounter::kNarrowToWide, tile) + (terms - 1) * rows * round.groups + part.first * rows;
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops({terms, columns, rows, groups})
        .nest(t::kIn, inputs(share, groups))
        .nest(t::kOut, LoopNest(std::int64_t{out.first_byte} + (round.first_group + part.first) * chip::kCells,
                                {step(kWord, part.words), step(out.pitch, columns), step(out.row_bytes, rows),
                                 step(chip::kCells, groups)}))
        .nest(t::kParam, LoopNest((first_line_ + lines_before(share, part)) * kQuarters,
                                  {step(kQuarters * share.blocks, terms), step(1, columns), step(row_quarters, rows),
                                   step(row_quarters * rows, groups)}))
        .nest(t::kPsum, LoopNest(0, {repeat(terms), repeat(columns), repeat(rows), repeat(groups)}))
        .wait(TileCounter::kNarrowToWide, {2, filled + 1, 1})
        .sums_inside()
        .set(t::kPsumGroupLevel, 1)
        .set(t::kReduceDims, 1)
        .set(t::kScalingLevel, 4)
        .cells(part.words * kWord);
    set_results(draft, step_.sum);
    if (step_.is_product) {
      draft.set(t::kLanesOff, 7).set(t::kInZero, step_.number_zero).set(t::kParamZero, step_.input_zero);
    } else {
      draft.set(t::kIn16)
          .set(t::kLanesOff, 6)
          .set(t::kInZero, weight_zero())
          .set(t::kConstant, step_.sum.offset)
          .wait(TileCounter::kMeshSouthIn, {4, writer_.total(TileCounter::kMeshSouthIn, tile), 0});
    }
    return draft;
  }

  const tiled::PixelNumbers& step_;
  const TiledTensor& input_;
  const TiledTensor& numbers_;
  const TiledTensor& output_;
  const std::int64_t weights_, first_line_;
  const std::int32_t groups_;  // of 64 channels
};

}  // namespace

void emit_step(Emission& to, const tiled::PixelNumbers& step) { PixelNumberWriter(to, step).write(); }

}  // namespace reef::emit

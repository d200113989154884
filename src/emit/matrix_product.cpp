// SPDX-License-Identifier: Apache-2.0
// The product of two computed matrices.
//
// The tensor unit multiplies inputs by parameters, which are lines of wide memory. narrow_to_wide writes an activation
// in exactly the layout that convolution weights have, where cell c of a line is column 64 g + c of the result:
//
//   rows of b are cells       line j of group g: word j (four of depth) of 64 rows, a row to a cell
//   channels of b are cells   line j of group g: rows 4j to 4j + 3, transposed, so that a cell has four rows of its
//                             channel
// multiply_add then is that of a 1x1 convolution whose lines lie in the tile. It subtracts both zero points before it
// multiplies, so that no correction is needed, and there are no biases or multipliers per channel.
//
// Waits: a fence at the beginning, behind which all operands are there and counters are 0. Two buffers of lines take
// turns: narrow_to_wide waits for PARAMETERS (the matrix before the last has been used), multiply_add for
// NARROW_TO_WIDE (its lines are there). Rows that fill up the depth are written by the mesh, with a fence behind.
//
// How it is known: our own; Google's compilers leave such products to the CPU. Each field has a value that Google's
// programs use; this combination of them was never seen: 8-bit sums over several lines in 64 cells (pools), lines from
// narrow_to_wide (pools, MUL), a zero point of parameters (MUL).
#include <algorithm>

#include "emit/blocks.h"
#include "isa/mesh.h"
#include "isa/movers.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

using tiled::MatrixRound;

constexpr std::int32_t whole_words(std::int32_t channels) { return (channels + kWord - 1) / kWord * kWord; }

class MatrixProductWriter : BlockWriter {
 public:
  MatrixProductWriter(Emission& to, const tiled::MatrixProduct& product)
      : BlockWriter(to),
        product_(product),
        a_(to.program.tensor(product.a)),
        b_(to.program.tensor(product.b)),
        output_(to.program.tensor(product.output)),
        first_line_(to.program.line_of(product.lines)),
        words_(product.depth_words()),
        groups_(product.groups()) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    if (!product_.rows_are_cells && product_.depth % kWord != 0) fill_up_depth();
    std::size_t rounds = 0;
    for (const auto& of_tile : product_.rounds) rounds = std::max(rounds, of_tile.size());
    for (std::size_t round = 0; round < rounds; ++round) {
      const TileMask tiles = tiles_with(round);
      to_lines(tiles, round);
      add_each(writer_, tiles, [&](int tile) { return multiply(tile, round); });
    }
    if (product_.is_last && output_.has_halo()) {
      writer_.tile_fence(kAllUnits, 0);
      exchange_halo(writer_, output_, nullptr);
    }
  }

 private:
  const MatrixRound& round_of(int tile, std::size_t round) const { return product_.rounds[at(tile)][round]; }
  TileMask tiles_with(std::size_t round) const {
    TileMask tiles = 0;
    for (int t = 0; t < chip::kTiles; ++t) {
      if (product_.rounds[at(t)].size() > round) tiles |= tiled::mask_of(t);
    }
    return tiles;
  }

  // What is behind the last row of each matrix multiplies as 0, whatever stands behind a's last channel.
  void fill_up_depth() {
    namespace m = isa::mesh;
    const std::int64_t pixel = b_.pitch / kWord, rows = whole_words(product_.depth);
    std::vector<Dim> dims = {step(1, (rows - product_.depth) * pixel)};
    if (product_.matrices > 1) dims.push_back(step(rows * pixel, product_.matrices));
    writer_.add(Draft(Opcode::kMeshNorth)
                    .tiles(tiles_with(0))
                    .nest(m::kOut, LoopNest(b_.address / kWord + product_.depth * pixel, dims))
                    .set(m::kFill)
                    .set(m::kFillValue, static_cast<std::uint32_t>(product_.b_zero) * 0x01010101u));
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
  }

  std::int32_t line_of(std::size_t round) const {
    return first_line_ + static_cast<std::int32_t>(round % 2) * groups_ * words_;
  }

  // Groups of 64 cells, and the rest; both are drafted before either is added, so that they wait for the same.
  void to_lines(TileMask tiles, std::size_t round) {
    const std::int32_t whole = product_.results / chip::kCells, rest = product_.results - whole * chip::kCells;
    std::vector<Draft> drafts;
    if (whole > 0) {
      add_each(drafts, tiles, [&](int tile) { return group_to_lines(tile, round, 0, whole, chip::kCells); });
    }
    if (rest > 0) {
      add_each(drafts, tiles, [&](int tile) { return group_to_lines(tile, round, whole, 1, rest); });
    }
    for (Draft& draft : drafts) writer_.add(std::move(draft));
  }

  Draft group_to_lines(int tile, std::size_t round, std::int32_t group, std::int32_t groups, std::int32_t cells) const {
    namespace m = isa::movers;
    const std::int64_t pixel = b_.pitch / kWord;
    std::int64_t base = (std::int64_t{b_.address} + round_of(tile, round).b_first) / kWord;
    Draft draft(Opcode::kNarrowToWide);
    std::vector<Dim> dims;
    if (product_.rows_are_cells) {
      base += std::int64_t{group} * chip::kCells * pixel;
      dims = {step(pixel, cells)};
      draft.set(m::kToWideLineLevel, 1);
      dims.push_back(step(1, words_));
      if (groups > 1) dims.push_back(step(chip::kCells * pixel, groups));
    } else {
      base += std::int64_t{group} * kGroupWords;
      dims = {step(pixel, kWord)};
      if (cells > kWord) dims.push_back(step(1, whole_words(cells) / kWord));
      draft.set(m::kTranspose).set(m::kToWideLineLevel, static_cast<std::int64_t>(dims.size()));
      dims.push_back(step(kWord * pixel, words_));
      if (groups > 1) dims.push_back(step(kGroupWords, groups));
    }
    draft.nest(m::kToWideIn, LoopNest(base, dims))
        .nest(m::kToWideOut,
              LoopNest(line_of(round) + std::int64_t{group} * words_, {step(1, std::int64_t{words_} * groups)}))
        .wait(TileCounter::kParameters, {1, writer_.total(TileCounter::kParameters, tile) - 1, 1}, Gate::kWriting)
        .signal(m::kSignalNarrowToWide, 1);
    return draft;
  }

  Draft multiply(int tile, std::size_t round) const {
    namespace t = isa::tensor_op;
    const MatrixRound& r = round_of(tile, round);
    const std::int64_t pixels = std::int64_t{r.columns} * r.rows, line = chip::kWideAddressUnitsPerLine;
    const std::int32_t cells = std::min(whole_words(product_.results), std::int32_t{chip::kCells});
    const std::int32_t last = whole_words(product_.results - (groups_ - 1) * chip::kCells);
    LoopNest results(std::int64_t{output_.address} + r.output.first,
                     {step(kWord, cells / kWord), step(r.output.pitch, r.columns), step(r.output.row_bytes, r.rows),
                      step(chip::kCells, groups_)});
    if (groups_ > 1) results.clip(3, last / kWord);
    Draft draft(Opcode::kMultiplyAdd);
    draft.loops({words_, pixels, groups_})
        .nest(t::kIn, LoopNest(std::int64_t{a_.address} + r.a.first, {step(kWord, words_), step(r.a.pitch, r.columns),
                                                                      step(r.a.row_bytes, r.rows), repeat(groups_)}))
        .nest(t::kOut, results)
        .nest(t::kParam,
              LoopNest(line_of(round) * line, {step(line, words_), repeat(pixels), step(line * words_, groups_)}))
        .nest(t::kPsum, LoopNest(0, {repeat(words_), repeat(pixels), repeat(groups_)}))
        .wait(TileCounter::kNarrowToWide, {3, writer_.total(TileCounter::kNarrowToWide, tile), 1})
        .signal(t::kSignalParameters, 3)
        .sums_inside()
        .set(t::kPsumGroupLevel, 1)
        .set(t::kReduceDims, 1)
        .set(t::kScalingLevel, 2)
        .cells(cells, last)
        .set(t::kInZero, product_.a_zero)
        .set(t::kParamZero, product_.b_zero)
        .set(t::kOutZero, product_.output_zero)
        .set_float(t::kScale, product_.multiplier)
        .set_float(t::kMax, product_.clamp.max)
        .set_float(t::kMin, product_.clamp.min);
    return draft;
  }

  const tiled::MatrixProduct& product_;
  const TiledTensor& a_;
  const TiledTensor& b_;
  const TiledTensor& output_;
  const std::int32_t first_line_;
  const std::int32_t words_, groups_;  // of the depth, of the results
};

}  // namespace

void emit_step(Emission& to, const tiled::MatrixProduct& product) { MatrixProductWriter(to, product).write(); }

}  // namespace reef::emit

// SPDX-License-Identifier: Apache-2.0
// Enlarging an image by two: one instruction for all tiles with equal shares.
//
// The instruction computes for each of its outputs where that lies in the source: (phase + 2 i) / 4 pixels from the
// start, which is one pixel before those that the tile owns. A tile's first output is twice its first pixel, or one
// before that where rows or columns do not divide by the tiles; the phase is less by two then.
//
// How it is known: fields as in Google's programs: nearest neighbours with and without half pixels, bilinear with half
// pixels, all by two. Bilinear without half pixels occurs by four and eight with phase 0 (docs/hardware/isa.md); by two
// it is the same rule with the phase that it gives.
#include "emit/blocks.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

using tiled::kResampleFactor;

constexpr std::int32_t kHalo = 1;
constexpr float kBilinearScale = 0x1p-14f;  // of two weights of 7 bits

// The pixel behind the first one that a tile reads: twice its number is the tile's first output, or the one behind it.
std::int32_t first_pixel(const tiled::AxisPartition& to, int tile) {
  const tiled::Window window = tiled::resample_window(to.size);
  return window.first(to.tile(tile).begin) + kHalo;
}

// Of the first output of a tile, from the pixel before that one, in units of 1 / (2 * factor) pixels.
std::int32_t phase(const tiled::Resample& step, const tiled::AxisPartition& to, int tile) {
  // Nearest pixels are rounded half a pixel up.
  const std::int32_t centers = kResampleFactor + 1, corners = step.bilinear ? 2 * kResampleFactor : kResampleFactor;
  const std::int32_t ahead = to.tile(tile).begin - kResampleFactor * first_pixel(to, tile);
  return (step.half_pixels ? centers : corners) + 2 * ahead;
}

Draft work_of(const tiled::Resample& step, const TiledTensor& from, const TiledTensor& to, int tile) {
  namespace t = isa::tensor_op;
  namespace r = isa::tensor_op::resample;
  const int row = chip::tile_row(tile), column = chip::tile_column(tile);
  const std::int32_t rows = to.rows.tile(row).own(), columns = to.columns.tile(column).own();
  const std::int32_t words = (to.channels + kWord - 1) / kWord, taps = step.bilinear ? 2 : 1;
  const std::int64_t pitch = from.pitch, row_bytes = from.row_bytes(column);
  const std::int64_t first =
      from.byte_of(row, column, first_pixel(to.rows, row) - kHalo, first_pixel(to.columns, column) - kHalo);
  std::vector<Dim> sums;
  if (step.bilinear) sums.push_back(repeat(taps * taps));
  for (const std::int64_t count : few_counts({columns, rows, words}, kMostParameterSteps)) {
    sums.push_back(repeat(count));
  }
  Draft draft(Opcode::kResample);
  draft.loops({taps, taps, columns, rows, 1, words})
      .nest(t::kIn, LoopNest(first, {emit::step(pitch, taps), emit::step(row_bytes, taps), repeat(columns),
                                     repeat(rows), emit::step(from.tile_bytes(), 1), emit::step(kWord, words)}))
      .nest(t::kOut,
            LoopNest(to.first_own_byte(row, column),
                     {emit::step(kWord, 1), emit::step(to.pitch, columns), emit::step(to.row_bytes(column), rows),
                      emit::step(to.tile_bytes(), 1), emit::step(kWord, words)}))
      .nest(t::kPsum, LoopNest(0, sums))
      .sums_inside()
      .set(t::kParam16)
      .set(t::kLanesOff, 6)
      .set(t::kScalingLevel, 5)
      .set(t::kReduceDims, 3)
      .cells(kWord)
      .set(t::kPsumGroupLevel, step.bilinear ? 1 : 0)
      .set_float(t::kScale, step.bilinear ? kBilinearScale : 1.0f)
      .set(r::kXDim, 2)
      .set(r::kXNearest, !step.bilinear)
      .set(r::kXPhase, phase(step, to.columns, column))
      .set(r::kXStep, r::kStepsPerPixel / kResampleFactor)
      .set(r::kYDim, 3)
      .set(r::kYNearest, !step.bilinear)
      .set(r::kYPhase, phase(step, to.rows, row))
      .set(r::kYStep, r::kStepsPerPixel / kResampleFactor)
      .set(r::kPixelStride, pitch)
      .set(r::kRowStride, row_bytes)
      .set(r::kSelect, !step.bilinear);
  return draft;
}

}  // namespace

void emit_step(Emission& to, const tiled::Resample& step) {
  const TiledTensor& input = to.program.tensor(step.input);
  const TiledTensor& output = to.program.tensor(step.output);
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  add_each(to.writer, output.owners(), [&](int tile) { return work_of(step, input, output, tile); });
  to.writer.tile_fence(kAllUnits, 0);
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  exchange_halo(to.writer, output, nullptr);
}

}  // namespace reef::emit

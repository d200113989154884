// SPDX-License-Identifier: Apache-2.0
// Bytes within the tiles' own narrow memories: tensor operations with the identity as weights, and fills.
//
// A copy multiplies 4 bytes by the 4x4 identity, or one byte at a time by a column of it, which puts that byte into one
// of the 4 cells; what belongs to one word is summed. Values are taken relative to the zero point, so that cells that
// get nothing hold the zero point. Fills are mesh instructions whose data is a constant.
//
// Nothing waits for counters: fences stand between making the identity, the rounds and the exchange of halos.
//
// How it is known: single copies are those of Google's compiler (docs/hardware/google_programs.md#copies, and its
// infeeds for single bytes); putting words together in two rounds is our own, checked on the virtual device.
#include <limits>

#include "emit/blocks.h"
#include "emit/constant_lines.h"
#include "isa/mesh.h"
#include "isa/tensor_op.h"

namespace reef::emit {
namespace {

using tiled::CopyDim;
using tiled::LocalCopies;
using tiled::LocalCopy;

class CopyWriter : BlockWriter {
 public:
  CopyWriter(Emission& to, const LocalCopies& step)
      : BlockWriter(to),
        step_(step),
        identity_(std::int64_t{to.program.line_of(step.identity.line)} * chip::kWideAddressUnitsPerLine) {}

  void write() {
    writer_.tile_fence(kAllUnits, kCountersOfTiles);
    if (step_.identity.words != tiled::kNowhere) {
      make_identity(writer_, program_, step_.identity);
      writer_.tile_fence(kAllUnits, 0);
    }
    for (const tiled::LocalFill& fill : step_.fills) write_fill(fill);
    write_round(step_.first_round);
    if (!step_.second_round.empty()) writer_.tile_fence(kAllUnits, 0);
    write_round(step_.second_round);
  }

 private:
  // Barriers are where a long program can be cut into pieces.
  void write_round(const std::vector<LocalCopy>& copies) {
    constexpr std::size_t kCopiesBetweenBarriers = 256;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      if (i > 0 && i % kCopiesBetweenBarriers == 0) writer_.barrier();
      write_copy(copies[i]);
    }
  }
  void write_fill(const tiled::LocalFill& fill) {
    namespace m = isa::mesh;
    std::vector<Dim> dims;
    for (const CopyDim& dim : fill.dims) dims.push_back(step(dim.target_stride / kWord, dim.count));
    if (dims.empty()) dims.push_back(repeat(1));
    writer_.add(Draft(Opcode::kMeshNorth)
                    .tiles(fill.tiles)
                    .nest(m::kOut, LoopNest((program_.address_of(fill.target) + fill.target_offset) / kWord, dims))
                    .set(m::kFill)
                    .set(m::kFillValue, static_cast<std::int64_t>(step_.target_zero) * 0x01010101));
  }

  void write_copy(const LocalCopy& copy) {
    namespace t = isa::tensor_op;
    std::vector<std::int64_t> loops = {copy.parts};
    std::vector<Dim> from = {step(copy.part_stride, copy.parts)}, to;
    std::vector<Dim> weights = {copy.single_bytes ? step(1, copy.parts) : repeat(copy.parts)};
    std::vector<Dim> sums = {repeat(copy.parts)};
    for (const CopyDim& dim : copy.dims) {
      loops.push_back(dim.count);
      from.push_back(step(dim.source_stride, dim.count));
      to.push_back(step(dim.target_stride, dim.count));
      weights.push_back(repeat(dim.count));
      sums.push_back(repeat(dim.count));
    }
    if (to.empty()) to.push_back(step(kWord, 1));
    const bool plain = step_.multiplier == 1.0f && step_.source_zero == step_.target_zero;
    constexpr float kNone = std::numeric_limits<float>::infinity();
    Draft draft(Opcode::kMultiplyAdd);
    draft.tiles(copy.tiles)
        .loops(loops)
        .nest(t::kIn, LoopNest(program_.address_of(copy.source) + copy.source_offset, from))
        .nest(t::kOut, LoopNest(program_.address_of(copy.target) + copy.target_offset, to))
        .nest(t::kParam, LoopNest(identity_ + (copy.single_bytes ? copy.first_byte : 0), weights))
        .nest(t::kPsum, LoopNest(0, sums))
        .sums_inside()
        .cells(kWord)
        .set(t::kInZero, step_.source_zero)
        .set(t::kOutZero, step_.target_zero)
        .set_float(t::kScale, step_.multiplier)
        .set_float(t::kMax, plain ? kNone : step_.max)
        .set_float(t::kMin, plain ? -kNone : step_.min)
        .set(t::kScalingLevel, static_cast<std::int64_t>(loops.size()));
    if (copy.single_bytes) draft.set(t::kLanesOff, 7);
    if (copy.single_bytes || copy.parts > 1) draft.set(t::kPsumGroupLevel, 1).set(t::kReduceDims, 1);
    writer_.add(draft);
  }

  const LocalCopies& step_;
  const std::int64_t identity_;
};

}  // namespace

void emit_step(Emission& to, const LocalCopies& step) {
  CopyWriter(to, step).write();
  if (step.output == tiled::kNowhere) return;
  const tiled::TiledTensor& output = to.program.tensor(step.output);
  if (output.spread != tiled::Spread::kGrid || !output.has_halo()) return;
  to.writer.tile_fence(kAllUnits, kCountersOfTiles);
  exchange_halo(to.writer, output, nullptr);
}

}  // namespace reef::emit

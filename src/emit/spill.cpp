// SPDX-License-Identifier: Apache-2.0
// Activations that are put aside: narrow memory to lines of wide memory of the same tile, and back to where they were.
//
// Everything before ends first, and nothing of what follows begins before all is moved: the memory changes hands.
//
// How it is known: Google's compiler does the same with inputs that several pieces of an image need
// (docs/hardware/google_large_networks.md#inputs-in-chunks,
// docs/hardware/google_large_networks.md#where-tensors-wait).
#include "emit/blocks.h"
#include "isa/movers.h"

namespace reef::emit {

void emit_step(Emission& to, const tiled::Spill& spill) {
  namespace m = isa::movers;
  ProgramWriter& writer = to.writer;
  const tiled::NarrowObject& object = to.program.narrow[at(spill.object)];
  const std::int64_t words = (object.bytes + chip::kNarrowWordBytes - 1) / chip::kNarrowWordBytes;
  const std::int64_t lines = to.program.wide[at(spill.lines)].lines;
  const LoopNest narrow(object.address / chip::kNarrowWordBytes, {step(1, words)});
  const LoopNest wide(to.program.line_of(spill.lines), {{1, lines, lines > 1}});
  writer.barrier();
  if (spill.is_back) {
    writer.add(Draft(isa::Opcode::kWideToNarrow)
                   .tiles(tiled::kAllTiles)
                   .nest(m::kToNarrowIn, wide)
                   .nest(m::kToNarrowOut, narrow)
                   .set(m::kToNarrowLineLevel, 1));
  } else {
    writer.add(Draft(isa::Opcode::kNarrowToWide)
                   .tiles(tiled::kAllTiles)
                   .nest(m::kToWideIn, narrow)
                   .nest(m::kToWideOut, wide)
                   .set(m::kToWideLineLevel, 1));
  }
  writer.tile_fence(kAllUnits, 0);
}

}  // namespace reef::emit

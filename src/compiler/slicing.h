// SPDX-License-Identifier: Apache-2.0
// Which operators are executed in slices (lower/row_slices.h), so that activations fit into the tiles' memory.
//
// Nothing is left to luck: what does not fit as a whole is tried in groups and slices in a fixed order, from the
// cheapest on, until everything has a place. More slices always take less memory, down to one row of a result for each
// row of tiles, so that a larger image needs more slices and no other help.
//
//   1. Lower everything without slices; add up what exists at each step.
//   2. All groups that can be executed in slices and have operators at which that is too much, each with as few slices
//      as make it fit. Those that cover all such operators with least work win, estimated as cycles of the busiest tile
//      (a shortest path over the operators).
//   3. Place everything. If it does not fit after all, because free memory is in pieces, begin again with a lower
//      limit.
//   4. If that does not help: the same, while what an operator does not use is put aside (schedule/spills.h), without
//      slices first.
//   5. If that does not help either: the same, while the host keeps the largest tensors, which then exist on the chip
//      in slices only; more and more of them, in the end all.
//
// How it is known that costs are right: they are those of the instructions' steps and of parameter lines on the ring
// (docs/hardware/timing.md#formulas), which is all that matters for a choice between groups.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/status.h"
#include "lower/lower.h"

namespace reef::compiler {

struct SlicePlan {
  std::vector<lower::SliceGroup> groups = {};
  std::set<std::int32_t> hosted = {};               // tensors of the model that the host keeps
  std::optional<tiled::TiledProgram> program = {};  // lowered in this way
};

// Into `memory` bytes of each tile. Empty: everything fits as it is, or with things put aside. kUnsupported: nothing
// was found; then `options.refused` gets the operators that are too large by themselves or, where none is, `crowded`
// the one at which memory is shortest. `options.groups`, `hosted` and `sketch` are not used.
Result<SlicePlan> choose_slices(const lower::PartBorder& part, const lower::LowerOptions& options, std::int64_t memory,
                                std::int32_t* crowded = nullptr);

}  // namespace reef::compiler

// SPDX-License-Identifier: Apache-2.0
// The cost of each step. None of these numbers was measured by this project: they were fitted to latencies and USB
// traces that others published (docs/performance.md says which, and how well they agree).
#pragma once

#include "chip/links.h"
#include "chip/machine.h"

namespace reef::device {

// Cycles of the tile clock.
struct UnitCosts {
  double tensor_step = chip::kCyclesPerStep;
  double result_word = 1;  // four bytes of a result; hidden behind the steps unless there are fewer of those
  double ring_byte = 1 / chip::kRingBytesPerCycle;
  double loop_back_byte = 1 / chip::kLoopBackBytesPerCycle;
  double mesh_word = 1 / chip::kMeshWordsPerCycle;
  double mover_word = 1 / chip::kMoverWordsPerCycle;  // between narrow and wide memory
  double scaling_step = 1;                            // assumed
  double scalar_instruction = 1;                      // assumed; no published value shows it
  int tile_queue = 16;  // instructions that wait in a tile before the core must wait; assumed
};

struct TimingOptions {
  const chip::LinkProfile* link = nullptr;  // null: the first of chip::link_profiles()
  double clock_hz = chip::kClockHzMax;
  UnitCosts costs;
};

}  // namespace reef::device

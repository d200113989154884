// SPDX-License-Identifier: Apache-2.0
// The cost of each step. None of these numbers was measured by this project: they were fitted to latencies and USB
// traces that others published (docs/performance.md says which, and how well they agree).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

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

// Where what is known of the chip allows more than one reading. The defaults are the usual ones
// (docs/hardware/timing.md#doubts says what speaks for which).
struct TimingReading {
  std::string_view name = "usual";
  std::string_view meaning = "what agrees best with published latencies";
  // A piece of a long program crosses the link only when the one before has been executed, not as soon as the link is
  // free.
  bool instructions_in_turn = false;
  // Bytes that the chip takes from the link ahead of the instruction that stores them.
  std::uint64_t ahead_bytes = 38000;
  // Results cross the link faster than its profile says.
  double output_speed = 1;
  // Wide memory feeds the cells and takes a line from the ring in the same cycle; but each visit of a partial sum takes
  // `sum_visit` cycles.
  bool takes_lines_while_computing = false;
  double sum_visit = 0;
};
// The usual one first.
std::span<const TimingReading> timing_readings();
// Null: there is none of that name.
const TimingReading* find_reading(std::string_view name);

struct TimingOptions {
  const chip::LinkProfile* link = nullptr;  // null: the first of chip::link_profiles()
  double clock_hz = chip::kClockHzMax;
  UnitCosts costs;
  TimingReading reading;
};

}  // namespace reef::device

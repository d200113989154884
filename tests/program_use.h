// SPDX-License-Identifier: Apache-2.0
// What of a program's parts its other parts use, decided from its instructions alone: which counts somebody waits for,
// which halves of double buffers are reached, which operands of the scalar core end up in a transfer.
//
// Programs are read from front to back. Where one branches, everything counts as used.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "chip/machine.h"
#include "isa/operation.h"

namespace reef::testing {

// The highest value that a wait needs on its way through the nest.
std::int64_t highest_needed(const isa::Wait& wait, const isa::NestShape& nest);

class ProgramUse {
 public:
  // Instructions of all chunks in a row, and what they do.
  ProgramUse(const std::vector<isa::Instruction>& instructions, const std::vector<isa::Operation>& operations);

  // Whether somebody waits for the counter of a signal of instruction `index`, or for what follows a reset there,
  // before it is set anew. Waits that the value set last fulfils do not count: signals do not matter to them.
  bool is_awaited(std::size_t index, bool is_scalar, int counter, bool is_reset) const;
  // Whether the value to which the counter was set last before the instruction fulfils a wait for `needed`.
  bool is_fulfilled_anyway(std::size_t index, bool is_scalar, int counter, std::int64_t needed) const;
  // Whether a fence's reset sets the counter to what it holds already: it was set to the same before, or never, which
  // is 0, and nothing has counted since.
  bool is_reset_already(std::size_t index, bool is_scalar, int counter, std::int64_t value) const;
  // Units of the tile that have been given instructions since they were last waited for (a fence's `drain`).
  std::uint32_t busy_units(std::size_t index, int tile) const {
    return busy_units_.at(index)[static_cast<std::size_t>(tile)];
  }
  // The same of the scalar core's units, as bits of a scalar fence.
  std::uint32_t busy_host_units(std::size_t index) const { return busy_units_.at(index)[kScalarCoreIndex]; }
  // Whether double buffers of the instruction's nest (0: source, 1: destination, 2: output of a tensor instruction)
  // reach their second half.
  bool reaches_second_half(std::size_t index, int nest) const { return second_half_.contains({index, nest}); }
  // Whether the result of a scalar bundle's arithmetic becomes a word of a transfer's descriptor.
  bool describes_transfer(std::size_t index) const { return has_branches_ || describing_.contains(index); }

 private:
  static constexpr int kCores = chip::kTiles + 1;  // tiles, then the scalar core
  static constexpr std::size_t kScalarCoreIndex = chip::kTiles;
  struct Event {
    std::size_t index = 0;   // of the instruction
    std::int64_t value = 0;  // that is set, or the highest that is needed
    bool operator<(std::size_t other) const { return index < other; }
  };
  struct Uses {
    std::vector<Event> waits, resets, signals;  // in order
  };
  void note_counters(std::size_t index, const isa::Operation& operation);
  void note_waits(std::size_t index, std::uint32_t tiles, const std::vector<isa::Wait>& waits,
                  const isa::NestShape* nest);
  void note_signal(std::size_t index, bool is_scalar, const isa::Signal& signal);
  void note_signals(std::size_t index, const isa::Operation& operation);
  void note_fences(std::size_t index, const isa::Operation& operation);
  void note_busy_units(std::size_t index, const isa::Operation& operation);
  // The last reset before the instruction.
  static const Event* reset_before(const Uses& used, std::size_t index);
  bool concerns(int core, std::size_t index, bool is_scalar, bool is_everywhere) const;
  void note_buffers(std::size_t index, const isa::Operation& operation);
  void note_transfers(const std::vector<isa::Instruction>& instructions);
  const Uses& uses(int core, int counter) const {
    return uses_[static_cast<std::size_t>(core)][static_cast<std::size_t>(counter)];
  }
  Uses& uses(int core, int counter) { return uses_[static_cast<std::size_t>(core)][static_cast<std::size_t>(counter)]; }

  bool has_branches_ = false;
  std::vector<std::uint32_t> tiles_;  // by instruction
  std::array<std::array<Uses, chip::kTileCounters>, kCores> uses_;
  // Passes of double buffers by tile and unit since the last fence for all units.
  std::array<std::array<std::array<std::int64_t, 3>, chip::kTileUnits>, chip::kTiles> phases_{};
  std::set<std::pair<std::size_t, int>> second_half_;
  std::array<std::uint32_t, kCores> busy_{};
  std::map<std::size_t, std::array<std::uint32_t, kCores>> busy_units_;  // at fences
  std::set<std::size_t> describing_;
};

}  // namespace reef::testing

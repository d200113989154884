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

class ProgramUse {
 public:
  // Instructions of all chunks in a row, and what they do.
  ProgramUse(const std::vector<isa::Instruction>& instructions, const std::vector<isa::Operation>& operations);

  // Whether somebody waits for the counter of a signal of instruction `index`, or for what follows a reset there,
  // before it is set anew.
  bool is_awaited(std::size_t index, bool is_scalar, int counter, bool is_reset) const;
  // Whether double buffers of the instruction's nest (0: source, 1: destination, 2: output of a tensor instruction)
  // reach their second half.
  bool reaches_second_half(std::size_t index, int nest) const { return second_half_.contains({index, nest}); }
  // Whether the result of a scalar bundle's arithmetic becomes a word of a transfer's descriptor.
  bool describes_transfer(std::size_t index) const { return has_branches_ || describing_.contains(index); }

 private:
  static constexpr int kCores = chip::kTiles + 1;  // tiles, then the scalar core
  struct Uses {
    std::vector<std::size_t> waits, resets;  // instructions, in order
  };
  void note_counters(std::size_t index, const isa::Operation& operation);
  void note_waits(std::size_t index, std::uint32_t tiles, const std::vector<isa::Wait>& waits);
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
  std::set<std::size_t> describing_;
};

}  // namespace reef::testing

// SPDX-License-Identifier: Apache-2.0
// A virtual chip that is handed chunks of instructions one at a time, as they come over a link or out of a queue.
//
// A program is over when all of its instructions are done and it has asked for an interrupt; until then the next chunk
// continues it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "execute/device/chip.h"
#include "execute/device/other_chip.h"

namespace reef::driver {

class CoreRunner {
 public:
  // `other`: it is not as we believe, but that one, which must outlive this.
  explicit CoreRunner(int threads, const device::OtherChip* other = nullptr);

  // As after power-on: memories hold nothing.
  void power_cycle();
  // The core has executed every instruction that it has.
  bool is_free() const { return program_ == nullptr || chip_.core().next >= program_->instructions.size(); }
  // Only if it is free. The host must be the same for all chunks and stay where it is.
  Status start(std::span<const std::uint8_t> chunk, device::Host& host);
  // Works as far as it can. An error: of the program, which is given up.
  Status advance();
  // The program has asked for an interrupt.
  void interrupted() { ++interrupts_; }

 private:
  device::Chip chip_;
  const device::OtherChip* const other_;
  bool has_run_ = false;                      // since the last power cycle
  std::unique_ptr<device::Program> program_;  // null: none is under way
  int interrupts_ = 0;                        // of the program under way
};

}  // namespace reef::driver

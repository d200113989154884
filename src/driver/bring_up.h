// SPDX-License-Identifier: Apache-2.0
// From a chip that sleeps to one that works, and back. The order of accesses over USB is that of Google's runtime,
// which equals two published logs of real sticks (docs/driver.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "driver/register_port.h"

namespace reef::driver {

// The core at 63, 125, 250 and 500 MHz.
enum class Clock : std::uint8_t { kLow, kMedium, kHigh, kMax };

struct BringUp {
  Clock clock = Clock::kMax;
  bool report_all_transfers = false;  // not only interrupts: for programs whose list of transfers is not complete
  std::size_t output_chunk = 1024;    // bytes after which output is sent
  Milliseconds settle{1000};          // for a register to follow
};

// The state that all units of the core are put into.
enum class RunState : std::uint8_t { kIdle = 0, kRun = 1, kHalt = 2 };
Status set_run_controls(RegisterPort& port, RunState state, Milliseconds settle);

Status wake_up_usb(RegisterPort& port, const BringUp& options);
// Sends the core to sleep: what it holds is lost.
Status put_to_sleep_usb(RegisterPort& port, Milliseconds settle);

// Reads and clears what a fatal-error interrupt reported, as a sentence.
Status fatal_error_usb(RegisterPort& port);

}  // namespace reef::driver

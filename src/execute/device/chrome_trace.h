// SPDX-License-Identifier: Apache-2.0
// A run as a picture: a file in the Chrome trace event format, for ui.perfetto.dev or chrome://tracing.
//
// One process per tile with a track for each unit, one for the scalar core and its units, one for the link. Times are
// simulated; a slice lasts from the moment a unit takes up an instruction to its last step, waits included (`busy` says
// how much of it is work).
#pragma once

#include <span>
#include <string>

#include "execute/device/timeline.h"

namespace reef::device {

// Programs are shown one after the other.
std::string chrome_trace(std::span<const ProgramRecord> records);

}  // namespace reef::device

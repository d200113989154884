// SPDX-License-Identifier: Apache-2.0
// A package around a few instructions in assembly, for tests of what no compiled model uses (device_trials.def): it has
// no input, one output of a few bytes, and a complete list of transfers, so that any driver runs it as it runs models.
#pragma once

#include <string_view>

#include "base/status.h"
#include "formats/darwinn/package.h"

namespace reef::compiler {

// `text` finds all units idle and all counters at 0, and sends `output_bytes` to the host; registers r0 to r3 are used
// before and behind it. `idle_rows` are that many rows that do nothing, in front of it.
Result<darwinn::Package> trial_package(std::string_view text, int output_bytes, int idle_rows = 0);

}  // namespace reef::compiler

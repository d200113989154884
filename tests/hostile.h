// SPDX-License-Identifier: Apache-2.0
// What a damaged or malicious file meets: read, verify and run under tight limits. Only a crash, a hang or runaway
// memory is a failure; an error and a run are both fine.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace reef::testing {

struct HostileLimits {
  std::int64_t memory_bytes = std::int64_t{256} << 20;
  double seconds = 2;
  std::int64_t device_steps = 300'000;  // of the virtual Edge TPU
};

// Everything a user's program would do with these bytes.
Status read_and_run(std::vector<std::uint8_t> file, const HostileLimits& limits);

}  // namespace reef::testing

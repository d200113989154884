// SPDX-License-Identifier: Apache-2.0
// Explains what an instruction that does not move waits for. Private to the device.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace reef::device {

struct Running;

// One sentence for each wait that is not fulfilled: "MESH_N_IN is 3, 4 is needed (signalled by mesh_south)".
std::vector<std::string> unmet_waits(const Running& run, std::span<const std::uint16_t> counters);

}  // namespace reef::device

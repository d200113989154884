// SPDX-License-Identifier: Apache-2.0
// docs/hardware/machine.md as text, generated from chip/facts.def and the names of counters and units.
#pragma once

#include <string>

namespace reef::report {

std::string machine_reference();

}  // namespace reef::report

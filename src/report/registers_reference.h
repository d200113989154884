// SPDX-License-Identifier: Apache-2.0
// docs/hardware/registers.md as text, generated from driver/registers.def.
#pragma once

#include <string>

namespace reef::report {

std::string registers_reference();

}  // namespace reef::report

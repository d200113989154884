// SPDX-License-Identifier: Apache-2.0
// docs/hardware/isa.md as text, generated from the instruction tables.
#pragma once

#include <string>

namespace reef::report {

std::string isa_reference();

}  // namespace reef::report

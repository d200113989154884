// SPDX-License-Identifier: Apache-2.0
// docs/hardware/seen.md: which values the fields of instructions have in public files.
#pragma once

#include <string>

namespace reef::report {

std::string seen_reference();

}  // namespace reef::report

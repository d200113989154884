// SPDX-License-Identifier: Apache-2.0
// Whether libraries can be put into a program before it starts (LD_PRELOAD).
#pragma once

#include <string>

#include "base/status.h"

namespace reef::app {

// The file that a shell would start for this word.
Result<std::string> find_program(const std::string& name);

// An error says why the system's loader would not load other libraries into it: it has no loader (statically linked),
// is for another kind of machine, or runs with other rights than the caller's. For a script, its interpreter counts.
Status check_can_be_preloaded(const std::string& file);

}  // namespace reef::app

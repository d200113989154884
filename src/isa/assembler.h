// SPDX-License-Identifier: Apache-2.0
// Text to instructions: docs/hardware/assembly.md.
#pragma once

#include <string_view>

#include "base/status.h"
#include "isa/program.h"

namespace reef::isa {

// One program: a text without .program directives. A failure names line, column, what was expected and what is there.
Result<Program> assemble(std::string_view text);

// A text with .program directives. Instructions before the first one belong to a program without a name.
Result<Listing> parse_listing(std::string_view text);

}  // namespace reef::isa

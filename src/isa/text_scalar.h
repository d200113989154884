// SPDX-License-Identifier: Apache-2.0
// Bundles of the scalar core as text: "r9 = fmul r9, 0.5 | dma.bytes = r8".
#pragma once

#include <string>

#include "base/status.h"
#include "isa/instruction.h"
#include "isa/text_line.h"

namespace reef::isa::text {

// The slots of a bundle with '|' between them, "nop" where there are none. Bits that no slot can say follow as
// "set field=value ...".
std::string print_bundle(const Instruction& instruction);
Status read_bundle(Line& line, Instruction& instruction);

}  // namespace reef::isa::text

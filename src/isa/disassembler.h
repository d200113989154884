// SPDX-License-Identifier: Apache-2.0
// Instructions as text that a person can read and the assembler turns back into the same bits:
// docs/hardware/assembly.md.
#pragma once

#include <string>

#include "isa/program.h"

namespace reef::isa {

struct DisassemblyOptions {
  bool comments = true;          // "; row 12" behind the first line of every instruction, and a few explanations
  bool always_sequence = false;  // sequence numbers even where the assembler would count to the same
};

// Any instructions, also such as no compiler makes: assemble(disassemble(p)) == p for every p.
std::string disassemble(std::span<const Instruction> program, const DisassemblyOptions& options = {});

std::string print_listing(const Listing& listing, const DisassemblyOptions& options = {});

}  // namespace reef::isa

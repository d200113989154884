// SPDX-License-Identifier: Apache-2.0
// Rules for the frame of a program, shared by the assembler and the disassembler.
#pragma once

#include <cstdint>

#include "isa/opcode.h"

namespace reef::isa {

// The length that `start` states: bits of all rows between the first and the last, modulo the field's 2^21 (a program
// of 16384 rows between them states 0).
constexpr std::uint32_t automatic_length(int program_rows) {
  const int content = program_rows > 2 ? program_rows - 2 : 0;
  return static_cast<std::uint32_t>(content % kMaxContentRows) * kRowBits;
}

}  // namespace reef::isa

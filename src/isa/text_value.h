// SPDX-License-Identifier: Apache-2.0
// Values of fields as text: scale=0.0235, tiles=0,3-5, reset=all-but-RING_WRITE, raw_1848=0x2. Reading gives back
// exactly the bits that were printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"
#include "isa/instruction.h"
#include "isa/text_line.h"

namespace reef::isa::text {

// The shortest decimal number that is read as the same float; bits in hexadecimal for a NaN.
std::string print_float(std::uint32_t bits);
// False where the token is not a float: a decimal number, inf, -inf, or all 32 bits in hexadecimal.
bool read_float(std::string_view token, std::uint32_t& bits);

// "name=value", or only "name" for a flag that is set.
void print_item(std::string& out, const Instruction& instruction, const Field& field);

// Reads one "name=value" or flag of `instruction` and sets it. Gives the field that was set.
Result<const Field*> read_item(Line& line, Instruction& instruction);

// Name of a counter, or counter_N for a number without one.
std::string counter_name(bool is_scalar, std::uint32_t counter);
Result<std::uint32_t> read_counter(Line& line, bool is_scalar, std::uint32_t highest);

}  // namespace reef::isa::text

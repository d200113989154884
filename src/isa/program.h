// SPDX-License-Identifier: Apache-2.0
// Bytes of a program (one instruction bitstream of a package) to instructions and back, without loss.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "isa/instruction.h"

namespace reef::isa {

using Program = std::vector<Instruction>;

// Fails with row, byte offset and opcode where the bytes are not whole known instructions. Says nothing about whether
// the program makes sense: any bits of known instructions are accepted.
Result<Program> decode(std::span<const std::uint8_t> bytes);
std::vector<std::uint8_t> encode(std::span<const Instruction> program);

int row_count(std::span<const Instruction> program);

// A program under a name, with whatever else is to be said about it.
struct NamedProgram {
  std::string name;
  std::vector<std::pair<std::string, std::string>> attributes;  // in order; keys need not be unique
  Program program;
  bool operator==(const NamedProgram&) const = default;
};

// Several programs in one text: what a package holds.
struct Listing {
  std::vector<NamedProgram> programs;
  bool operator==(const Listing&) const = default;
};

}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
#include "isa/program.h"

namespace reef::isa {

Result<Program> decode(std::span<const std::uint8_t> bytes) {
  REEF_REQUIRE(bytes.size() % kRowBytes == 0,
               "a program is made of rows of {} bytes, but has {} bytes: {} are left after row {}; the file is cut off "
               "or is not an instruction bitstream",
               kRowBytes, bytes.size(), bytes.size() % kRowBytes, bytes.size() / kRowBytes);
  Program program;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t row = at / kRowBytes;
    const unsigned code = (bytes[at] >> 6 | bytes[at + 1] << 2) & 63;
    const auto opcode = opcode_from_code(code);
    REEF_REQUIRE(opcode.has_value(), "row {} (byte {}): {:#04x} is not an opcode of the Edge TPU", row, at, code);
    const std::size_t size = static_cast<std::size_t>(info(*opcode).rows) * kRowBytes;
    REEF_REQUIRE(size <= bytes.size() - at,
                 "row {} (byte {}): opcode {:#04x} ({}) has {} rows, but the program ends after {} of them", row, at,
                 code, info(*opcode).mnemonic, info(*opcode).rows, (bytes.size() - at) / kRowBytes);
    REEF_ASSIGN_OR_RETURN(Instruction instruction, Instruction::from_bytes(bytes.subspan(at, size)));
    program.push_back(instruction);
    at += size;
  }
  return program;
}

std::vector<std::uint8_t> encode(std::span<const Instruction> program) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(static_cast<std::size_t>(row_count(program)) * kRowBytes);
  for (const Instruction& instruction : program) instruction.append_to(bytes);
  return bytes;
}

int row_count(std::span<const Instruction> program) {
  int rows = 0;
  for (const Instruction& instruction : program) rows += instruction.rows();
  return rows;
}

}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
// Instructions with random bits, for tests.
#pragma once

#include <cstdint>
#include <random>

#include "isa/program.h"

namespace reef::isa {

// Every field gets 0, its usual value, an extreme or random bits, so that both ends and the middle occur.
inline Instruction random_instruction(Opcode opcode, std::mt19937_64& random) {
  Instruction instruction(opcode);
  const std::uint64_t style = random() % 4;
  for (const Field& field : fields(opcode)) {
    if (field == common::kOpcode) continue;
    const auto noise = static_cast<std::uint32_t>(random()) & field.mask();
    std::uint32_t value = noise;
    if (style != 0) {
      const std::uint32_t choices[] = {
          0, 0, field.usual, 1, field.mask(), field.mask() >> 1, (field.mask() >> 1) + 1, noise};
      value = choices[random() % (style == 1 ? 3 : 8)] & field.mask();
    }
    Field plain = field;
    plain.kind = Kind::kRaw;
    plain.plus = 0;
    static_cast<void>(instruction.set(plain, value).ok());
  }
  return instruction;
}

inline Program random_program(std::size_t length, std::mt19937_64& random) {
  Program program;
  for (std::size_t i = 0; i < length; ++i) {
    program.push_back(random_instruction(all_opcodes()[random() % all_opcodes().size()].opcode, random));
  }
  return program;
}

}  // namespace reef::isa

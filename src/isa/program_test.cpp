// SPDX-License-Identifier: Apache-2.0
#include "isa/program.h"

#include <gtest/gtest.h>

#include "isa/test_programs.h"

namespace reef::isa {
namespace {

TEST(IsaProgram, DecodeEncodeIdentity) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const Program program = random_program(60, random);
    const auto bytes = encode(program);
    EXPECT_EQ(bytes.size(), static_cast<std::size_t>(row_count(program)) * kRowBytes);
    const auto again = decode(bytes);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(*again, program);
    EXPECT_EQ(encode(*again), bytes);
  }
}

// Writing every field of a decoded instruction into an empty one gives the same bits: nothing lives outside the fields.
TEST(IsaProgram, FieldByFieldRebuild) {
  std::mt19937_64 random(8);
  for (const Instruction& instruction : random_program(500, random)) {
    Instruction rebuilt(instruction.opcode());
    for (const Field& field : fields(instruction.opcode())) {
      ASSERT_TRUE(rebuilt.set(field, instruction.get(field)).ok());
    }
    ASSERT_EQ(rebuilt, instruction);
  }
}

TEST(IsaProgram, EmptyProgram) {
  const auto program = decode({});
  ASSERT_TRUE(program.ok());
  EXPECT_TRUE(program->empty());
}

std::string decode_error(std::vector<std::uint8_t> bytes) {
  const auto program = decode(bytes);
  return program.ok() ? "" : program.status().message();
}

TEST(IsaProgram, ErrorsNameRowByteAndOpcode) {
  auto bytes = encode(std::vector{Instruction(Opcode::kStart), Instruction(Opcode::kRingSend)});
  bytes.pop_back();
  EXPECT_NE(decode_error(bytes).find("79 bytes"), std::string::npos) << decode_error(bytes);
  bytes.resize(64);
  EXPECT_NE(
      decode_error(bytes).find("row 1 (byte 16): opcode 0x10 (ring_send) has 4 rows, but the program ends after 3"),
      std::string::npos)
      << decode_error(bytes);
  bytes.resize(16);
  bytes.resize(32);  // a second row of zeros: opcode 0
  EXPECT_NE(decode_error(bytes).find("row 1 (byte 16): 0x00 is not an opcode"), std::string::npos)
      << decode_error(bytes);
}

}  // namespace
}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
#include "isa/combination.h"

#include <gtest/gtest.h>

#include "isa/format.h"

namespace reef::isa {
namespace {

// An instruction that was seen: the most frequent combination of its opcode.
Instruction with(Opcode opcode, std::initializer_list<std::pair<const char*, std::int64_t>> values) {
  Instruction instruction(opcode);
  instruction.set_usual();
  for (const auto& [name, value] : values) {
    const Field* const field = find_field(opcode, name);
    EXPECT_NE(field, nullptr) << name;
    if (field != nullptr) {
      EXPECT_TRUE(instruction.set(*field, value).ok()) << name;
    }
  }
  return instruction;
}

TEST(Combination, NamesWhatIsSwitchedOnAndLeavesNumbersOut) {
  const Instruction plain = with(Opcode::kMultiplyAdd, {});
  const Instruction numbers = with(Opcode::kMultiplyAdd, {{"in.base", 1234}, {"loops.limit_0", 3}, {"in_zero", 7}});
  EXPECT_EQ(combination_of(plain), combination_of(numbers)) << "addresses, counts and constants are no part of it";
  const Instruction on = with(Opcode::kMultiplyAdd, {{"in_16_bit", 1}, {"out.clip_dim", 3}});
  EXPECT_NE(combination_of(on).find("in_16_bit=1"), std::string::npos) << combination_of(on);
  EXPECT_NE(combination_of(on).find("out.clip_dim"), std::string::npos) << combination_of(on);
  EXPECT_EQ(combination_of(on).find("out.clip_dim="), std::string::npos) << "only that there is a clip";
}

TEST(Combination, TheTableIsReadAsItWasWritten) {
  const CombinationTable& table = combination_table();
  EXPECT_GT(table.files, 100);
  EXPECT_GT(table.seen.size(), 200u);
  std::int64_t instructions = 0;
  for (const auto& [key, seen] : table.seen) {
    instructions += seen.instructions;
    EXPECT_LE(seen.files, table.files);
    EXPECT_GE(seen.instructions, seen.files);
  }
  EXPECT_GT(instructions, 100'000);
}

TEST(Combination, WhatWasNeverSeenIsNamedWithItsNearest) {
  // Bits whose purpose nobody knows, and that are 0 everywhere.
  const Field* const unknown = find_field(Opcode::kMultiplyAdd, "raw_1844");
  ASSERT_NE(unknown, nullptr);
  Program program = {with(Opcode::kMultiplyAdd, {{"raw_1844", unknown->usual == 0 ? 1 : 0}})};
  program.push_back(program.front());
  const std::vector<Novelty> found = novelties_of(program);
  ASSERT_FALSE(found.empty());
  for (const Novelty& novelty : found) {
    EXPECT_EQ(novelty.times, 2);
    EXPECT_EQ(novelty.first_row, 0);
    EXPECT_EQ(novelty.instructions, (std::vector<std::size_t>{0, 1}));
  }
  EXPECT_NE(found.front().what.find("raw_1844"), std::string::npos) << found.front().what;
}

TEST(Combination, TheCounterWritesWhatTheTableReads) {
  CombinationCounter counter;
  const Program program = {with(Opcode::kMultiplyAdd, {{"in_16_bit", 1}})};
  counter.add_file(std::vector<Program>{program, program});
  counter.add_file(std::vector<Program>{program});
  const std::string text = counter.to_def();
  EXPECT_NE(text.find("SEEN_FILES(2)"), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("SEEN_COMBINATION(\"multiply_add\", \"{}\", 3, 2)", combination_of(program[0]))),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
#include "isa/instruction.h"

#include <bit>
#include <limits>

#include <gtest/gtest.h>

#include "isa/movers.h"
#include "isa/ring.h"
#include "isa/tensor_op.h"
#include "isa/test_programs.h"

namespace reef::isa {
namespace {

TEST(Instruction, FieldsAcrossWordBoundaries) {
  Instruction instruction(Opcode::kMultiplyAdd);
  ASSERT_TRUE(instruction.set(tensor_op::kIn.base, 0x3ffff).ok());  // bits 191..208
  EXPECT_EQ(instruction.words()[2], std::uint64_t{1} << 63);
  EXPECT_EQ(instruction.words()[3], 0x1ffffu);
  EXPECT_EQ(instruction.get(tensor_op::kIn.base), 0x3ffff);
  ASSERT_TRUE(instruction.set(tensor_op::kIn.base, 1).ok());
  EXPECT_EQ(instruction.words()[3], 0u);
}

TEST(Instruction, RangesAreChecked) {
  Instruction instruction(Opcode::kRingSend);
  EXPECT_TRUE(instruction.set(ring::kSendIn.delta[0], -65536).ok());
  EXPECT_EQ(instruction.get(ring::kSendIn.delta[0]), -65536);
  EXPECT_FALSE(instruction.set(ring::kSendIn.delta[0], -65537).ok());
  EXPECT_FALSE(instruction.set(ring::kSendIn.base, 65536).ok());
  EXPECT_FALSE(instruction.set(ring::kSendIn.base, -1).ok());
  EXPECT_FALSE(instruction.set(tensor_op::kScale, 0).ok()) << "the field is behind the end of the instruction";
  EXPECT_FALSE(instruction.set(common::kOpcode, 1).ok());
  EXPECT_TRUE(instruction.set(common::kOpcode, 0x10).ok());
  EXPECT_EQ(instruction.get(tensor_op::kScale), 0);
}

TEST(Instruction, Floats) {
  Instruction instruction(Opcode::kMultiplyAdd);
  ASSERT_TRUE(instruction.set_float(tensor_op::kScale, -0.0f).ok());
  EXPECT_EQ(instruction.bits(tensor_op::kScale), 0x80000000u);
  ASSERT_TRUE(instruction.set(tensor_op::kScale, 0x7fc12345).ok());
  EXPECT_EQ(std::bit_cast<std::uint32_t>(instruction.get_float(tensor_op::kScale)), 0x7fc12345u);
  EXPECT_FALSE(instruction.set_float(tensor_op::kCells, 1.0f).ok());
}

// Strides from deltas: a 3 x 2 block of words in rows of 10.
TEST(Instruction, NestStrides) {
  Instruction instruction(Opcode::kNarrowToWide);
  Nest nest;
  nest.base = 100;
  nest.dims[0] = {1, 3, true};
  nest.dims[1] = {10, 2, true};
  nest.dims[2] = {0, 5, false};
  ASSERT_TRUE(instruction.write_nest(movers::kToWideIn, nest).ok());
  EXPECT_EQ(instruction.get(movers::kToWideIn.delta[0]), 1);
  EXPECT_EQ(instruction.get(movers::kToWideIn.delta[1]), 10 - 2);
  EXPECT_EQ(instruction.get(movers::kToWideIn.delta[2]), -(2 + 10));
  EXPECT_EQ(instruction.get(movers::kToWideIn.limit[2]), 4);
  EXPECT_EQ(instruction.get(movers::kToWideIn.used), 3);
  const Nest again = instruction.read_nest(movers::kToWideIn);
  EXPECT_EQ(again.significant_dims(), 3);
  EXPECT_EQ(again.dims, nest.dims);
  EXPECT_EQ(again.steps(), 30);
}

TEST(Instruction, ClippedSteps) {
  Nest nest;
  nest.dims[0] = {1, 16, true};
  nest.dims[1] = {16, 4, true};
  nest.dims[2] = {64, 3, true};
  nest.clip_dim = 2;
  nest.clip_steps = 6;
  EXPECT_EQ(nest.steps(), 16 * 4 * 2 + 6 * 4);
  nest.clip_steps = 20;
  EXPECT_EQ(nest.steps(), 16 * 4 * 2 + 20 * 4);
}

TEST(Instruction, NestRefusals) {
  Instruction instruction(Opcode::kRingSend);
  const Instruction before = instruction;
  Nest nest;
  nest.dims[0] = {70000, 2, true};
  EXPECT_FALSE(instruction.write_nest(ring::kSendIn, nest).ok()) << "the delta does not fit";
  nest.dims[0] = {1, 0, true};
  EXPECT_FALSE(instruction.write_nest(ring::kSendIn, nest).ok()) << "no steps";
  nest.dims[0] = {1, 65537, true};
  EXPECT_FALSE(instruction.write_nest(ring::kSendIn, nest).ok()) << "too many steps";
  nest.dims[0] = {};
  nest.dims[5] = {1, 2, true};
  EXPECT_FALSE(instruction.write_nest(ring::kSendIn, nest).ok()) << "too many dimensions";
  EXPECT_EQ(instruction, before);
}

// Whatever bits a nest has, reading and writing it back gives the same bits, even where the strides are absurd.
TEST(Instruction, NestRoundTripForArbitraryBits) {
  std::mt19937_64 random(1);
  for (const OpcodeInfo& op : all_opcodes()) {
    for (int i = 0; i < 400 && !nests(op.opcode).empty(); ++i) {
      const Instruction original = random_instruction(op.opcode, random);
      Instruction copy = original;
      for (const NestFields& fields : nests(op.opcode)) {
        const Nest nest = original.read_nest(fields);
        ASSERT_TRUE(copy.write_nest(fields, Nest{}).ok());
        const Status written = copy.write_nest(fields, nest);
        ASSERT_TRUE(written.ok()) << written.message();
        static_cast<void>(nest.steps());
      }
      ASSERT_EQ(copy, original) << op.mnemonic;
    }
  }
}

TEST(Instruction, SelectedCounters) {
  Instruction instruction(Opcode::kWideToNarrow);
  EXPECT_EQ(instruction.producer_counter(movers::kSignalWideToNarrow),
            static_cast<std::uint32_t>(TileCounter::kWideToNarrow));
  ASSERT_TRUE(instruction.set(movers::kToScaling, 1).ok());
  EXPECT_EQ(instruction.producer_counter(movers::kSignalWideToNarrow),
            static_cast<std::uint32_t>(TileCounter::kWideToScaling));
}

}  // namespace
}  // namespace reef::isa

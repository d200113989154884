// SPDX-License-Identifier: Apache-2.0
#include "retarget/scalar_softmax.h"

#include <bit>

#include <gtest/gtest.h>

#include "isa/scalar.h"

namespace reef::retarget {
namespace {

namespace b = isa::bundle;

void add(isa::Program& program, b::Alu alu, bool immediate, std::uint32_t operand) {
  isa::Instruction code(isa::Opcode::kScalar);
  ASSERT_TRUE(code.set(b::kAlu, static_cast<std::int64_t>(alu)).ok());
  ASSERT_TRUE(code.set(b::kAluImmediate, immediate ? 1 : 0).ok());
  ASSERT_TRUE(code.set(b::kAluOperand, operand).ok());
  program.push_back(code);
}

isa::Program softmax(int uses, std::uint32_t last_zero_point) {
  isa::Program program;
  for (int k = 0; k < uses; ++k) {
    add(program, b::Alu::kMove, true, 1);
    add(program, b::Alu::kSub, true, k + 1 == uses ? last_zero_point : 162);
    add(program, b::Alu::kIntToFloat, false, 3);
    add(program, b::Alu::kFloatMul, true, std::bit_cast<std::uint32_t>(0.25f));
  }
  add(program, b::Alu::kFloatMul, true, 0x3fb8aa3b);
  add(program, b::Alu::kFloatMul, true, std::bit_cast<std::uint32_t>(256.0f));
  return program;
}

TEST(ScalarSoftmax, FindsItsConstants) {
  const auto found = find_scalar_softmax(softmax(3, 162));
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ(found->zero_point, 162);
  EXPECT_EQ(found->scale, 0.25f);
  EXPECT_EQ(found->zero_points, (std::vector<std::uint32_t>{1, 5, 9}));
  EXPECT_EQ(found->scales, (std::vector<std::uint32_t>{3, 7, 11}));
}

TEST(ScalarSoftmax, RefusesWhatIsNotKnown) {
  EXPECT_FALSE(find_scalar_softmax(softmax(2, 162)).ok());
  EXPECT_FALSE(find_scalar_softmax(softmax(3, 161)).ok());  // the three uses disagree
  EXPECT_FALSE(find_scalar_softmax({}).ok());
}

}  // namespace
}  // namespace reef::retarget

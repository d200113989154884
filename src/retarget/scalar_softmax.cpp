// SPDX-License-Identifier: Apache-2.0
#include "retarget/scalar_softmax.h"

#include <bit>
#include <set>

#include "isa/scalar.h"

namespace reef::retarget {

namespace {

namespace b = isa::bundle;

constexpr std::uint32_t kLog2E = 0x3fb8aa3b;
constexpr std::uint32_t kOutputFactor = 0x43800000;  // 256
constexpr std::size_t kUses = 3;

bool is_alu(const isa::Instruction& code, b::Alu alu, bool has_immediate) {
  return code.opcode() == isa::Opcode::kScalar && code.bits(b::kAlu) == static_cast<std::uint32_t>(alu) &&
         code.test(b::kAluImmediate) == has_immediate;
}

}  // namespace

Result<ScalarSoftmax> find_scalar_softmax(const isa::Program& program) {
  ScalarSoftmax found;
  std::set<std::uint32_t> zero_points, scales, factors;
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (is_alu(program[i], b::Alu::kFloatMul, true)) factors.insert(program[i].bits(b::kAluOperand));
    if (i + 2 >= program.size() || !is_alu(program[i], b::Alu::kSub, true)) continue;
    if (!is_alu(program[i + 1], b::Alu::kIntToFloat, false) || !is_alu(program[i + 2], b::Alu::kFloatMul, true))
      continue;
    found.zero_points.push_back(static_cast<std::uint32_t>(i));
    found.scales.push_back(static_cast<std::uint32_t>(i + 2));
    zero_points.insert(program[i].bits(b::kAluOperand));
    scales.insert(program[i + 2].bits(b::kAluOperand));
  }
  if (found.scales.size() != kUses || zero_points.size() != 1 || scales.size() != 1 || factors.count(kLog2E) == 0 ||
      factors.count(kOutputFactor) == 0) {
    return unsupported("the template has no softmax code that is known, neither for the tiles nor for the scalar core");
  }
  found.zero_point = static_cast<std::int32_t>(*zero_points.begin());
  found.scale = std::bit_cast<float>(*scales.begin());
  return found;
}

}  // namespace reef::retarget

// SPDX-License-Identifier: Apache-2.0
// A tensor op of the template as matching sees it: what kind of arithmetic it is, its constants, and what it reads.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isa/instruction.h"
#include "isa/tensor_op.h"
#include "retarget/provenance.h"

namespace reef::retarget {

// The constants in a tensor op that depend on quantization, as bits.
enum class Constant : std::uint8_t { kParamZero, kInZero, kOutZero, kScale, kMax, kMin, kAddend };
inline constexpr int kConstants = 7;
const isa::Field& constant_field(Constant constant);

// Which arithmetic: the combinations of the flags that compilers use.
enum class Arithmetic : std::uint8_t {
  kWeights,     // weights that stay (sums in the cells or in memory)
  kElements,    // 8-bit elements, parameters made on the spot
  kWideIn,      // 16-bit inputs, 8-bit parameters
  kWideParam,   // 8-bit inputs, 16-bit parameters
  kWideBoth,    // 16 bits both
  kSumsToLine,  // 16-bit parameters; the sums themselves are the result
  kOther,
};

struct OpView {
  std::uint32_t instruction = 0;
  const isa::Instruction* code = nullptr;
  const TensorOpTrace* trace = nullptr;
  isa::Opcode opcode = isa::Opcode::kMultiplyAdd;
  Arithmetic arithmetic = Arithmetic::kOther;
  int lanes_off = 0;
  int cells = 1;
  bool has_biases = false, has_multipliers = false, has_zero_line = false;
  bool has_activation = false, is_odd = false, has_wide_result = false;
  std::array<std::uint32_t, kConstants> constants{};

  std::uint32_t bits(Constant constant) const { return constants[at(constant)]; }
  // A byte-for-byte copy: no constant, no zero point, no clamp.
  bool is_copy() const;
  bool has_open_clamp() const;  // no clamp: minus to plus infinity
  bool is_multiply_add() const { return opcode == isa::Opcode::kMultiplyAdd; }
  // The parameters are nothing but constant words.
  bool has_only_fills() const;
};

OpView view_of(const isa::Instruction& code, const TensorOpTrace& trace);

// "instruction 812 (a convolution-like op of 9 weight lines of 64 cells with biases)".
std::string describe(const OpView& op);

}  // namespace reef::retarget

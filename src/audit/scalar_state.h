// SPDX-License-Identifier: Apache-2.0
// The scalar core's registers, predicates and memory, as far as they follow from the program without data.
//
// Bits are known or not: programs put bytes into words of which they know nothing else. What comes from the ring is
// not known. Host addresses that the driver writes into the program count as known numbers: only sizes and tags of
// transfers are looked at.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "isa/instruction.h"

namespace reef::audit {

struct ScalarValue {
  std::uint32_t bits = 0;
  std::uint32_t known = 0;  // mask; other bits are 0
  bool is_known() const { return known == ~0u; }
  static ScalarValue of(std::uint32_t number) { return {number, ~0u}; }
};

// The effects of a bundle outside of the registers.
struct BundleEffects {
  bool is_undecided = false;             // whether it stores something depends on data
  bool pushes = false;                   // four bytes to the host
  bool issues = false;                   // the descriptor below
  ScalarValue bytes, tag;                // of it
  std::int64_t read = -1, written = -1;  // words of scalar memory; -1: none or not known
  std::string error;                     // what no core could do
};

class ScalarState {
 public:
  static constexpr std::int64_t kMemoryWords = 4096;
  ScalarState() : memory_(kMemoryWords) {
    registers_.fill(ScalarValue::of(0));
    predicates_.fill(ScalarValue::of(0));
  }

  BundleEffects execute(const isa::Instruction& bundle);
  ScalarValue reg(std::uint32_t number) const { return registers_[number & 31]; }
  std::optional<bool> predicate(std::uint32_t number) const;
  void forget_word(std::int64_t word) { memory_[at(word % kMemoryWords)] = {}; }

 private:
  ScalarValue calculate(const isa::Instruction& bundle) const;
  void store(const isa::Instruction& bundle, bool is_certain, std::array<ScalarValue, 32>& registers,
             BundleEffects& effects);

  std::array<ScalarValue, 32> registers_;
  std::array<ScalarValue, 32> predicates_;
  std::array<ScalarValue, 4> descriptor_;
  std::vector<ScalarValue> memory_;
};

}  // namespace reef::audit

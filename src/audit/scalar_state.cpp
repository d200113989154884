// SPDX-License-Identifier: Apache-2.0
// A bundle's slots act together: all read the registers as they were before it.
#include "audit/scalar_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "isa/layout.h"
#include "isa/scalar.h"

namespace reef::audit {
namespace {

namespace b = isa::bundle;

// Integer operations only.
ScalarValue integer_result(b::Alu alu, std::uint32_t x, std::uint32_t y) {
  const auto sx = static_cast<std::int32_t>(x), sy = static_cast<std::int32_t>(y);
  switch (alu) {
    case b::Alu::kAdd:
      return x + y;
    case b::Alu::kSub:
      return x - y;
    case b::Alu::kAnd:
      return x & y;
    case b::Alu::kOr:
      return x | y;
    case b::Alu::kXor:
      return x ^ y;
    case b::Alu::kShiftLeft:
      return y < 32 ? x << y : 0;
    case b::Alu::kShiftRight:
      return y < 32 ? x >> y : 0;
    case b::Alu::kShiftRightSigned:
      return static_cast<std::uint32_t>(sx >> std::min<std::uint32_t>(y, 31));
    case b::Alu::kEqual:
      return x == y;
    case b::Alu::kNotEqual:
      return x != y;
    case b::Alu::kGreater:
      return sx > sy;
    case b::Alu::kLess:
      return sx < sy;
    case b::Alu::kGreaterEqual:
      return sx >= sy;
    case b::Alu::kGreaterEqualUnsigned:
      return x >= y;
    case b::Alu::kMove:
      return y;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::optional<bool> ScalarState::predicate(std::uint32_t number) const {
  const ScalarValue value = predicates_[number & 31];
  if (!value) return std::nullopt;
  return *value != 0;
}

ScalarValue ScalarState::calculate(const isa::Instruction& bundle) const {
  const std::uint32_t alu = bundle.bits(b::kAlu), operand = bundle.bits(b::kAluOperand);
  const ScalarValue y = bundle.test(b::kAluImmediate) ? ScalarValue(operand) : registers_[operand & 31];
  const ScalarValue x = b::is_unary(alu) ? ScalarValue(0) : registers_[bundle.bits(b::kAluSource)];
  if (!x || !y) return std::nullopt;
  return integer_result(static_cast<b::Alu>(alu), *x, *y);
}

void ScalarState::store(const isa::Instruction& bundle, BundleEffects& effects) {
  const ScalarValue value = registers_[bundle.bits(b::kStoreSource)];
  const std::uint32_t address = bundle.bits(b::kStoreAddress);
  const auto kind = static_cast<b::Store>(bundle.bits(b::kStore));
  switch (kind) {
    case b::Store::kNone:
      return;
    case b::Store::kAddress:
    case b::Store::kRegister: {
      const ScalarValue word = kind == b::Store::kAddress ? ScalarValue(address) : registers_[address & 31];
      if (!word) return std::fill(memory_.begin(), memory_.end(), std::nullopt);
      if (*word >= kMemoryWords) {
        effects.error = fmt::format("stores to word {} of scalar memory, which has {}", *word, kMemoryWords);
        return;
      }
      effects.written = *word;
      memory_[*word] = value;
      return;
    }
    case b::Store::kPush:
      effects.pushes = true;
      return;
    case b::Store::kDescriptor:
      if (address < descriptor_.size()) {
        descriptor_[address] = value;
      } else {
        effects.error = fmt::format("writes word {} of a descriptor, which has 4", address);
      }
      return;
    case b::Store::kIssue:
      effects.issues = true;
      effects.bytes = descriptor_[2];
      effects.tag = descriptor_[3];
      return;
  }
  effects.error = fmt::format("has an unknown store {}", bundle.bits(b::kStore));
}

BundleEffects ScalarState::execute(const isa::Instruction& bundle) {
  BundleEffects effects;
  if (bundle.test(isa::common::kPredicated)) {
    const auto holds = predicate(bundle.bits(isa::common::kPredicate));
    effects.is_undecided = !holds;
    if (!holds || *holds != bundle.test(isa::common::kPredicateSense)) return effects;
  }
  auto registers = registers_;
  const auto load = static_cast<b::Load>(bundle.bits(b::kLoad));
  if (load != b::Load::kNone) {
    const std::uint32_t address = bundle.bits(b::kLoadAddress);
    const ScalarValue word = load == b::Load::kAddress ? ScalarValue(address) : registers_[address & 31];
    auto& pointer = registers[address & 31];
    if (load == b::Load::kRegisterStep && pointer) *pointer += address >> 5;
    auto& loaded = registers[bundle.bits(b::kLoadDest)];
    loaded.reset();
    if (word && *word < kMemoryWords) {
      effects.read = *word;
      loaded = memory_[*word];
    } else if (word) {
      effects.error = fmt::format("loads word {} of scalar memory, which has {}", *word, kMemoryWords);
    }
  }
  if (bundle.bits(b::kMath) != 0) registers[bundle.bits(b::kMathDest)].reset();
  store(bundle, effects);
  const std::uint32_t alu = bundle.bits(b::kAlu);
  if (alu != 0) {
    auto& results = b::writes_predicate(alu) ? predicates_ : registers;
    results[bundle.bits(b::kAluDest)] = calculate(bundle);
  }
  registers_ = registers;
  return effects;
}

}  // namespace reef::audit

// SPDX-License-Identifier: Apache-2.0
// A bundle's slots act together: all read the registers as they were before it.
#include "audit/scalar_state.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "isa/layout.h"
#include "isa/scalar.h"

namespace reef::audit {
namespace {

namespace b = isa::bundle;

float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// Half to even, saturating.
std::uint32_t rounded(float value) {
  if (std::isnan(value)) return 0;
  const float whole = std::nearbyint(value);
  if (whole >= 2147483648.0f) return 0x7fffffffu;
  if (whole < -2147483648.0f) return 0x80000000u;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(whole));
}

std::optional<std::uint32_t> result_of(b::Alu alu, std::uint32_t x, std::uint32_t y) {
  const auto sx = static_cast<std::int32_t>(x), sy = static_cast<std::int32_t>(y);
  switch (alu) {
    case b::Alu::kAdd:
      return x + y;
    case b::Alu::kSub:
      return x - y;
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
    case b::Alu::kIntToFloat:
      return std::bit_cast<std::uint32_t>(static_cast<float>(sy));
    case b::Alu::kFloatToInt:
      return rounded(as_float(y));
    case b::Alu::kFloatAdd:
      return std::bit_cast<std::uint32_t>(as_float(x) + as_float(y));
    case b::Alu::kFloatSub:
      return std::bit_cast<std::uint32_t>(as_float(x) - as_float(y));
    case b::Alu::kFloatMul:
      return std::bit_cast<std::uint32_t>(as_float(x) * as_float(y));
    default:
      return std::nullopt;
  }
}

ScalarValue shifted(b::Alu alu, ScalarValue x, std::uint32_t by) {
  if (by >= 32) return ScalarValue::of(0);
  if (alu == b::Alu::kShiftLeft) return {x.bits << by, x.known << by | ((1u << by) - 1)};
  return {x.bits >> by, x.known >> by | ~(~0u >> by)};
}

// Bit by bit where that is possible.
ScalarValue calculated(b::Alu alu, ScalarValue x, ScalarValue y) {
  switch (alu) {
    case b::Alu::kMove:
      return y;
    case b::Alu::kAnd: {
      const std::uint32_t zeros = (x.known & ~x.bits) | (y.known & ~y.bits);
      return {x.bits & y.bits, (x.known & y.known) | zeros};
    }
    case b::Alu::kOr:
      return {x.bits | y.bits, (x.known & y.known) | x.bits | y.bits};
    case b::Alu::kXor:
      return {(x.bits ^ y.bits) & x.known & y.known, x.known & y.known};
    case b::Alu::kShiftLeft:
    case b::Alu::kShiftRight:
      return y.is_known() ? shifted(alu, x, y.bits) : ScalarValue{};
    default:
      break;
  }
  if (!y.is_known() || (!b::is_unary(static_cast<std::uint32_t>(alu)) && !x.is_known())) return {};
  const auto result = result_of(alu, x.bits, y.bits);
  return result ? ScalarValue::of(*result) : ScalarValue{};
}

}  // namespace

std::optional<bool> ScalarState::predicate(std::uint32_t number) const {
  const ScalarValue value = predicates_[number & 31];
  if (!value.is_known()) return std::nullopt;
  return value.bits != 0;
}

ScalarValue ScalarState::calculate(const isa::Instruction& bundle) const {
  const std::uint32_t alu = bundle.bits(b::kAlu), operand = bundle.bits(b::kAluOperand);
  const ScalarValue y = bundle.test(b::kAluImmediate) ? ScalarValue::of(operand) : registers_[operand & 31];
  return calculated(static_cast<b::Alu>(alu), registers_[bundle.bits(b::kAluSource)], y);
}

void ScalarState::store(const isa::Instruction& bundle, bool is_certain, std::array<ScalarValue, 32>& registers,
                        BundleEffects& effects) {
  const ScalarValue value = registers_[bundle.bits(b::kStoreSource)];
  const std::uint32_t address = bundle.bits(b::kStoreAddress);
  const auto kind = static_cast<b::Store>(bundle.bits(b::kStore));
  switch (kind) {
    case b::Store::kNone:
      return;
    case b::Store::kAddress:
    case b::Store::kRegister:
    case b::Store::kRegisterStep: {
      const ScalarValue word = kind == b::Store::kAddress ? ScalarValue::of(address) : registers_[address & 31];
      if (kind == b::Store::kRegisterStep) {
        auto& pointer = registers[address & 31];
        pointer = is_certain ? calculated(b::Alu::kAdd, pointer, ScalarValue::of(address >> 5)) : ScalarValue{};
      }
      if (!word.is_known()) return std::fill(memory_.begin(), memory_.end(), ScalarValue{});
      if (word.bits >= kMemoryWords) {
        effects.error = fmt::format("stores to word {} of scalar memory, which has {}", word.bits, kMemoryWords);
        return;
      }
      effects.written = word.bits;
      memory_[word.bits] = value;
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
  bool is_certain = true;
  if (bundle.test(isa::common::kPredicated)) {
    const auto holds = predicate(bundle.bits(isa::common::kPredicate));
    is_certain = holds.has_value();
    effects.is_undecided = !holds && bundle.bits(b::kStore) != 0;
    if (effects.is_undecided || (holds && *holds != bundle.test(isa::common::kPredicateSense))) return effects;
  }
  auto registers = registers_;
  const auto load = static_cast<b::Load>(bundle.bits(b::kLoad));
  if (load != b::Load::kNone) {
    const std::uint32_t address = bundle.bits(b::kLoadAddress);
    const ScalarValue word = load == b::Load::kAddress ? ScalarValue::of(address) : registers_[address & 31];
    auto& pointer = registers[address & 31];
    if (load == b::Load::kRegisterStep) {
      pointer = is_certain ? calculated(b::Alu::kAdd, pointer, ScalarValue::of(address >> 5)) : ScalarValue{};
    }
    auto& loaded = registers[bundle.bits(b::kLoadDest)];
    loaded = {};
    if (word.is_known() && word.bits < kMemoryWords) {
      effects.read = word.bits;
      if (is_certain) loaded = memory_[word.bits];
    } else if (word.is_known()) {
      effects.error = fmt::format("loads word {} of scalar memory, which has {}", word.bits, kMemoryWords);
    }
  }
  if (bundle.bits(b::kMath) != 0) registers[bundle.bits(b::kMathDest)] = {};
  store(bundle, is_certain, registers, effects);
  const std::uint32_t alu = bundle.bits(b::kAlu);
  if (alu != 0) {
    const ScalarValue result = is_certain ? calculate(bundle) : ScalarValue{};
    (b::writes_predicate(alu) ? predicates_ : registers)[bundle.bits(b::kAluDest)] = result;
  }
  registers_ = registers;
  return effects;
}

}  // namespace reef::audit

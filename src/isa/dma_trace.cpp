// SPDX-License-Identifier: Apache-2.0
#include "isa/dma_trace.h"

#include <fmt/format.h>

#include "isa/scalar.h"

namespace reef::isa {

void DmaTrace::forget() {
  registers_.fill(std::nullopt);
  descriptor_.fill(std::nullopt);
}

std::string DmaTrace::describe() const {
  const std::optional<std::uint32_t> bytes = descriptor_[2];
  const std::optional<std::uint32_t> tag = descriptor_[3];
  if (!tag || *tag >= std::size(bundle::kDescriptorTags) || bundle::kDescriptorTags[*tag].empty()) return "";
  if (!bytes || *tag == static_cast<std::uint32_t>(bundle::DescriptorTag::kInterrupt)) {
    return std::string(bundle::kDescriptorTags[*tag]);
  }
  return fmt::format("{}, {} bytes", bundle::kDescriptorTags[*tag], *bytes);
}

std::string DmaTrace::follow(const Instruction& in) {
  using namespace bundle;
  issued_.reset();
  if (in.opcode() == Opcode::kBranch || in.opcode() == Opcode::kRepeat) forget();
  if (in.opcode() != Opcode::kScalar) return "";
  const bool certain = !in.test(common::kPredicated);
  std::string words;
  // The store slot reads registers as they were before this bundle.
  if (in.bits(kStore) == static_cast<std::uint32_t>(Store::kDescriptor) && in.bits(kStoreAddress) < 4) {
    descriptor_[in.bits(kStoreAddress)] = certain ? registers_[in.bits(kStoreSource)] : std::nullopt;
  } else if (in.bits(kStore) == static_cast<std::uint32_t>(Store::kIssue)) {
    words = describe();
    issued_ = Descriptor{certain ? descriptor_[2] : std::nullopt, certain ? descriptor_[3] : std::nullopt};
  }
  std::optional<std::uint32_t> moved;
  if (certain && in.bits(kAlu) == static_cast<std::uint32_t>(Alu::kMove)) {
    const std::uint32_t operand = in.bits(kAluOperand);
    moved = in.test(kAluImmediate) ? std::optional(operand) : registers_[operand % 32];
  }
  if (in.test(kAlu) && !writes_predicate(in.bits(kAlu))) registers_[in.bits(kAluDest)] = moved;
  if (in.test(kLoad)) {
    registers_[in.bits(kLoadDest)] = std::nullopt;
    registers_[in.bits(kLoadAddress) % 32] = std::nullopt;  // a stepping load changes its address register
  }
  if (in.test(kMath)) registers_[in.bits(kMathDest)] = std::nullopt;
  return words;
}

}  // namespace reef::isa

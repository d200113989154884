// SPDX-License-Identifier: Apache-2.0
// What the scalar core's registers are used for in execution programs, and small things that blocks share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "emit/program_writer.h"
#include "isa/fence.h"

namespace reef::emit {

// Addresses of host buffers.
inline constexpr int kParametersHigh = 0, kParametersLow = 1, kScratchHigh = 2, kScratchLow = 3;
// Of the transfer that is being queued, and four or five more registers that queueing changes.
inline constexpr int kAddressHigh = 4, kAddressLow = 5, kDescriptorScratch = 6;
// Of a layer's buffer: behind those.
inline ProgramWriter::RegisterPair layer_registers(const ProgramWriter& writer) {
  const int high = writer.address_code() == AddressCode::kCopies ? 10 : 11;
  return {high + 1, high};
}

// Passes that are left of a loop; its predicate.
inline constexpr int kLoopCounter = 14, kLoopIsDone = 0;

inline constexpr int kNopsAfterHalt = 4;
inline constexpr std::uint32_t kScalarMovers = 12;  // pop and outfeed, as units of a scalar fence

inline darwinn::AddressUse host_address(darwinn::BaseAddress base, const std::string& layer,
                                        darwinn::AddressHalf half) {
  darwinn::AddressUse use;
  use.base = base;
  use.name = layer;
  use.half = half;
  return use;
}

// Loads the address of a layer's buffer.
inline void load_layer_address(ProgramWriter& writer, darwinn::BaseAddress base, const std::string& layer) {
  const ProgramWriter::RegisterPair registers = layer_registers(writer);
  writer.load_address(registers.high, host_address(base, layer, darwinn::AddressHalf::kUpper));
  writer.load_address(registers.low, host_address(base, layer, darwinn::AddressHalf::kLower));
}
// Makes it that of the transfer that is going to be queued.
inline void use_layer_address(ProgramWriter& writer) {
  writer.copy_address({kAddressLow, kAddressHigh}, layer_registers(writer), kDescriptorScratch);
}

// A total as the 16 bits of a counter.
constexpr std::int32_t wrapped_total(std::int64_t total) {
  return static_cast<std::int16_t>(static_cast<std::uint16_t>(static_cast<std::uint64_t>(total)));
}

// The scalar core waits for its movers, then sets counters.
inline void reset_scalar_counters(ProgramWriter& writer, std::initializer_list<ScalarCounter> counters,
                                  std::int32_t value) {
  std::int64_t mask = 0;
  for (const ScalarCounter counter : counters) mask |= std::int64_t{1} << static_cast<int>(counter);
  writer.add(Draft(isa::Opcode::kScalarFence)
                 .set(isa::scalar_fence::kReset, mask)
                 .set(isa::scalar_fence::kResetTo, value)
                 .set(isa::scalar_fence::kDrain, kScalarMovers));
}

// `total` in blocks of `block`, the last of which may be shorter: the nest of a host buffer, whose halves are blocks.
inline LoopNest buffer_blocks(std::int64_t base, std::int64_t total, std::int64_t block) {
  const std::int64_t blocks = (total + block - 1) / block;
  LoopNest nest(base, {step(1, block), repeat(blocks)});
  nest.swap(1, block).clip(1, total - block * (blocks - 1));
  return nest;
}

}  // namespace reef::emit

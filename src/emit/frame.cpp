// SPDX-License-Identifier: Apache-2.0
// How programs begin and end.
//
// Nothing is assumed about what ran before: all units drain, all counters become 0. Addresses of host buffers are
// immediates of scalar instructions that the driver fills in before it sends the program (the package's field offsets).
// At the end the counters of the ring, which are never reset in between, are waited for: only then has every line that
// was sent arrived. The interrupt is a transfer like others, with a tag of its own and no bytes.
#include "emit/blocks.h"
#include "emit/registers.h"
#include "isa/fence.h"
#include "isa/scalar.h"

namespace reef::emit {
namespace {

constexpr std::uint32_t kAllScalarCounters = (1u << isa::kScalarCounterCount) - 1;
constexpr std::uint32_t kAllScalarUnits = 31;

}  // namespace

void clear_chip(ProgramWriter& writer) {
  namespace f = isa::scalar_fence;
  writer.tile_fence(kAllUnits, kAllCounters, true);
  writer.add(Draft(Opcode::kScalarFence)
                 .set(f::kTiles, tiled::kAllTiles)
                 .set(f::kReset, kAllScalarCounters)
                 .set(f::kAwaitNotify)
                 .set(f::kNotifyTiles, tiled::kAllTiles)
                 .set(f::kDrain, kAllScalarUnits));
  writer.load_address(kParametersLow, host_address(darwinn::BaseAddress::kParameter, "", darwinn::AddressHalf::kLower));
  writer.load_address(kParametersHigh,
                      host_address(darwinn::BaseAddress::kParameter, "", darwinn::AddressHalf::kUpper));
}

void prologue_of_execution(ProgramWriter& writer) {
  clear_chip(writer);
  writer.load_address(kScratchLow, host_address(darwinn::BaseAddress::kScratch, "", darwinn::AddressHalf::kLower));
  writer.load_address(kScratchHigh, host_address(darwinn::BaseAddress::kScratch, "", darwinn::AddressHalf::kUpper));
  reset_scalar_counters(writer, {ScalarCounter::kAvdataInfeed, ScalarCounter::kAvdataPop}, 0);
  writer.barrier();
}

void halt(ProgramWriter& writer) {
  writer.add(Draft(Opcode::kHalt).set(isa::control::kHaltCode, 16));
  for (int i = 0; i < kNopsAfterHalt; ++i) writer.add(Draft(Opcode::kScalar));
}

void clear_ring_turns(ProgramWriter& writer) {
  namespace f = isa::scalar_fence;
  writer.tile_fence(kAllUnits, kCountersOfTiles);
  Draft turns(Opcode::kScalarFence);
  turns.set(f::kTiles, tiled::kAllTiles).set(f::kDrain, kScalarMovers);
  std::int64_t reset = 0;
  std::uint32_t reset_on_tiles = 0;
  for (const auto& [counter, on_tiles] : {std::pair(ScalarCounter::kRingProducerA, TileCounter::kRingProducerA),
                                          std::pair(ScalarCounter::kRingProducerB, TileCounter::kRingProducerB)}) {
    if (writer.total(counter) == 0) continue;  // the channel was not used
    const int index = static_cast<int>(counter);
    reset |= std::int64_t{1} << index;
    reset_on_tiles |= counter_mask(on_tiles);
    turns.set(f::threshold(index), wrapped_total(writer.total(counter))).set(f::compare(index));
  }
  writer.add(turns.set(f::kReset, reset));
  writer.tile_fence(kAllUnits, reset_on_tiles, true);
  writer.await_tiles();
}

void epilogue_of_execution(ProgramWriter& writer) {
  clear_ring_turns(writer);
  writer.barrier(true);
  writer.load_register(kAddressHigh, 0);
  writer.load_register(kAddressLow, 0);
  writer.queue_transfer(
      {kAddressLow, kAddressHigh, kDescriptorScratch, 0, static_cast<int>(isa::bundle::DescriptorTag::kInterrupt)});
  halt(writer);
}

}  // namespace reef::emit

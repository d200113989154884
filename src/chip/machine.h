// SPDX-License-Identifier: Apache-2.0
// The Edge TPU ("beagle") as data: numbers as constants, counters and units as names.
//
// A scalar core reads one stream of instructions. It hands those for tiles to the 16 tiles of a 4 x 4 grid, where ten
// units per tile work through their queues in order, and keeps those that move data between host, FIFOs and ring.
// Units are held together by counters alone (see docs/hardware/README.md).
// Numbers come from facts.def, where each says how it is known.
#pragma once

#include <cstdint>
#include <string_view>

namespace reef::chip {

#define GROUP(title)
#define FACT(type, name, value, unit, evidence, source, meaning) inline constexpr type name = value;
#include "chip/facts.def"
#undef FACT
#undef GROUP

static_assert(kTiles == kTileRows * kTileColumns);
static_assert(kWideLineBytes == kCells * kLanesPerCell);
static_assert(kMultiplyAccumulatesPerCycle == kTiles * kCells * kLanesPerCell);

// The chip's name inside packages.
inline constexpr std::string_view kChipName = "beagle";

// Counters of a tile, numbered as instructions name them (the order of libedgetpu's SyncCounter registers).
enum class TileCounter : std::uint8_t {
  kActivations = 0,  // libedgetpu: AVDATA. Words a tensor operation wrote.
  kParameters,       // parameters a tensor operation is done with
  kPartialSums,      // never used by any program seen
  kMeshNorthIn,
  kMeshEastIn,
  kMeshSouthIn,
  kMeshWestIn,
  kMeshNorthOut,
  kMeshEastOut,
  kMeshSouthOut,
  kMeshWestOut,
  kWideToNarrow,
  kWideToScaling,
  kNarrowToWide,
  kRingReadA,
  kRingReadB,
  kRingWrite,
  kRingProducerA,  // counted on every tile and on the scalar core at once: whose turn it is on the ring
  kRingProducerB,
};
std::string_view name(TileCounter counter);

// Counters of the scalar core. libedgetpu's register order has the two POP counters before the two INFEED ones;
// instructions number them the other way round (decoded: programs deadlock under the register order).
enum class ScalarCounter : std::uint8_t {
  kActivationInfeed = 0,
  kParameterInfeed,
  kActivationPop,
  kParameterPop,
  kLoopBackPop,  // libedgetpu: SCALAR_INFEED
  kRingProducerA,
  kRingProducerB,
  kRingOutfeed,
  kScalarPipeline,  // never watched by any program seen
};
std::string_view name(ScalarCounter counter);

// Units of a tile in the order of a tile fence's unit mask (bit 0 first). Bits 1 to 4 are named by elimination: which
// of 1/2 and which of 3/4 is which is open (see docs/hardware/machine.md).
enum class TileUnit : std::uint8_t {
  kTensor = 0,
  kWideToNarrow,
  kRingProducer,
  kRingConsumerA,
  kRingConsumerB,
  kNarrowToWide,
  kMeshSouth,  // sends south, receives from north (op 15)
  kMeshWest,   // op 16
  kMeshNorth,  // op 17
  kMeshEast,   // op 18
};
std::string_view name(TileUnit unit);

constexpr int tile_row(int tile) { return tile / kTileColumns; }
constexpr int tile_column(int tile) { return tile % kTileColumns; }

}  // namespace reef::chip

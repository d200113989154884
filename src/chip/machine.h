// SPDX-License-Identifier: Apache-2.0
// The Edge TPU ("beagle") as data: numbers as constants, counters as names.
//
// A scalar core reads one stream of instructions. It hands those for tiles to the 16 tiles of a 4 x 4 grid, where ten
// units per tile work through their queues in order, and keeps those that move data between host, FIFOs and ring.
// Units are held together by counters alone (see docs/hardware/README.md).
// Numbers come from facts.def, where each says how it is known.
#pragma once

#include <cstdint>
#include <iterator>
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
  kAvdata = 0,   // activations: words a tensor operation wrote
  kParameters,   // parameters a tensor operation is done with
  kPartialSums,  // never used by any program seen
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
inline constexpr std::string_view kTileCounterNames[] = {
    "AVDATA",      "PARAMETERS",     "PARTIAL_SUMS",    "MESH_N_IN",       "MESH_E_IN",
    "MESH_S_IN",   "MESH_W_IN",      "MESH_N_OUT",      "MESH_E_OUT",      "MESH_S_OUT",
    "MESH_W_OUT",  "WIDE_TO_NARROW", "WIDE_TO_SCALING", "NARROW_TO_WIDE",  "RING_READ_A",
    "RING_READ_B", "RING_WRITE",     "RING_PRODUCER_A", "RING_PRODUCER_B",
};
static_assert(std::size(kTileCounterNames) == kTileCounters);

// Counters of the scalar core. libedgetpu's register order has the two POP counters before the two INFEED ones;
// instructions number them the other way round (decoded: programs deadlock under the register order).
enum class ScalarCounter : std::uint8_t {
  kAvdataInfeed = 0,
  kParameterInfeed,
  kAvdataPop,
  kParameterPop,
  kLoopbackPop,  // libedgetpu: SCALAR_INFEED
  kRingProducerA,
  kRingProducerB,
  kRingOutfeed,
  kScalarPipeline,  // never watched by any program seen
};
inline constexpr std::string_view kScalarCounterNames[] = {
    "AVDATA_INFEED",   "PARAMETER_INFEED", "AVDATA_POP",   "PARAMETER_POP",   "LOOPBACK_POP",
    "RING_PRODUCER_A", "RING_PRODUCER_B",  "RING_OUTFEED", "SCALAR_PIPELINE",
};
static_assert(std::size(kScalarCounterNames) == kScalarCounters);

constexpr int tile_row(int tile) { return tile / kTileColumns; }
constexpr int tile_column(int tile) { return tile % kTileColumns; }

// Directions of the mesh, in the order of its instructions.
enum class Direction : std::uint8_t { kSouth, kWest, kNorth, kEast };
// The tile that a tile's mesh unit sends to; -1 beyond the edge.
constexpr int neighbour(int tile, Direction direction) {
  switch (direction) {
    case Direction::kSouth:
      return tile_row(tile) + 1 < kTileRows ? tile + kTileColumns : -1;
    case Direction::kWest:
      return tile_column(tile) > 0 ? tile - 1 : -1;
    case Direction::kNorth:
      return tile_row(tile) > 0 ? tile - kTileColumns : -1;
    case Direction::kEast:
      return tile_column(tile) + 1 < kTileColumns ? tile + 1 : -1;
  }
  return -1;
}

}  // namespace reef::chip

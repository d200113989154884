// SPDX-License-Identifier: Apache-2.0
// The synchronization counters that instructions wait for, count up and set.
//
// All are 16 bits wide and wrap; a wait compares the signed difference modulo 2^16. Names and order of the tile
// counters: public register names of Google's open runtime. Order of the scalar counters: what the instructions need
// (the runtime's register table lists pop before infeed; programs deadlock with that order).
#pragma once

#include <cstdint>
#include <string_view>

namespace reef::isa {

enum class TileCounter : std::uint8_t {
  kAvdata,
  kParameters,
  kPartialSums,
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
  kRingProducerA,
  kRingProducerB,
};
inline constexpr std::string_view kTileCounterNames[] = {
    "AVDATA",      "PARAMETERS",     "PARTIAL_SUMS",    "MESH_N_IN",       "MESH_E_IN",
    "MESH_S_IN",   "MESH_W_IN",      "MESH_N_OUT",      "MESH_E_OUT",      "MESH_S_OUT",
    "MESH_W_OUT",  "WIDE_TO_NARROW", "WIDE_TO_SCALING", "NARROW_TO_WIDE",  "RING_READ_A",
    "RING_READ_B", "RING_WRITE",     "RING_PRODUCER_A", "RING_PRODUCER_B",
};
inline constexpr int kTileCounterCount = 19;

enum class ScalarCounter : std::uint8_t {
  kAvdataInfeed,
  kParameterInfeed,
  kAvdataPop,
  kParameterPop,
  kLoopbackPop,
  kRingProducerA,
  kRingProducerB,
  kRingOutfeed,
  kScalarPipeline,
};
inline constexpr std::string_view kScalarCounterNames[] = {
    "AVDATA_INFEED",   "PARAMETER_INFEED", "AVDATA_POP",   "PARAMETER_POP",   "LOOPBACK_POP",
    "RING_PRODUCER_A", "RING_PRODUCER_B",  "RING_OUTFEED", "SCALAR_PIPELINE",
};
inline constexpr int kScalarCounterCount = 9;

}  // namespace reef::isa

// SPDX-License-Identifier: Apache-2.0
// Opcodes 1a and 24: fences of the tiles and of the scalar core.
#pragma once

#include "isa/layout.h"

namespace reef::isa {

namespace tile_fence {

using layout::field;
using layout::flag;
using layout::with_values;

// Order: 0 and 5 to 9 are certain; whether 1 and 2 or 3 and 4 are the other way round is open.
inline constexpr std::string_view kUnitNames[] = {"tensor",         "wide_to_narrow", "ring_send",  "ring_receive_a",
                                                  "ring_receive_b", "narrow_to_wide", "mesh_south", "mesh_west",
                                                  "mesh_north",     "mesh_east"};

inline constexpr Field kTiles =
    field("tiles", 12, 16, Kind::kTileMask, "tiles", "who executes it", Evidence::kExecuted);
inline constexpr Field kSequence =
    field("sequence", 28, 16, Kind::kUnsigned, "",
          "number of the tile instruction, one more than the one before; wraps", Evidence::kObserved);
inline constexpr Field kReset = with_values(
    field("reset", 44, 19, Kind::kMask, "counters", "counters that are set to reset_to", Evidence::kExecuted),
    kTileCounterNames);
inline constexpr Field kResetTo =
    field("reset_to", 63, 16, Kind::kSigned, "count", "the new value", Evidence::kExecuted);
inline constexpr Field kDrain = with_values(
    field("drain", 79, 10, Kind::kMask, "units",
          "units that must be idle with empty queues. Their double buffers start over, but for a fence of the "
          "tensor unit alone",
          Evidence::kExecuted),
    kUnitNames);
// In all 33 fences that use these, the threshold is the one that the scalar fence just before waits for.
inline constexpr Field kAwaitProducerA =
    flag("await_ring_producer_a", 89, "first waits until RING_PRODUCER_A has reached await_count", Evidence::kInferred);
inline constexpr Field kAwaitProducerB =
    flag("await_ring_producer_b", 90, "first waits until RING_PRODUCER_B has reached await_count", Evidence::kInferred);
inline constexpr Field kAwaitCount =
    field("await_count", 91, 16, Kind::kSigned, "count", "value waited for", Evidence::kInferred);
inline constexpr Field kNotify = flag("notify", 107, "tells the scalar core when done", Evidence::kExecuted);
inline constexpr Field kLast = field("last", 109, 2, Kind::kUnsigned, "",
                                     "3 in the last fence of a program, 0 in all others", Evidence::kObserved);

}  // namespace tile_fence

namespace scalar_fence {

using layout::field;
using layout::flag;
using layout::with_values;

inline constexpr std::string_view kUnitNames[] = {"unit_0", "unit_1", "pop", "outfeed", "unit_4"};
inline constexpr std::string_view kThresholdNames[] = {"threshold_0", "threshold_1", "threshold_2",
                                                       "threshold_3", "threshold_4", "threshold_5",
                                                       "threshold_6", "threshold_7", "threshold_8"};
inline constexpr std::string_view kCompareNames[] = {"compare_0", "compare_1", "compare_2", "compare_3", "compare_4",
                                                     "compare_5", "compare_6", "compare_7", "compare_8"};

inline constexpr Field kTiles =
    field("tiles", 12, 16, Kind::kTileMask, "tiles", "all tiles in fences that wait for tiles or counters, else none",
          Evidence::kObserved);
inline constexpr Field kReset = with_values(
    field("reset", 32, 9, Kind::kMask, "counters", "scalar counters that are set to reset_to", Evidence::kExecuted),
    kScalarCounterNames);
inline constexpr Field kResetTo =
    field("reset_to", 41, 16, Kind::kSigned, "count", "the new value", Evidence::kExecuted);
inline constexpr Field kAwaitNotify =
    flag("await_notify", 57, "waits for a notification from each tile of notify_tiles", Evidence::kExecuted);
inline constexpr Field kNotifyTiles =
    field("notify_tiles", 73, 16, Kind::kTileMask, "tiles", "whose notifications are waited for", Evidence::kExecuted);
inline constexpr Field kDrain = with_values(
    field("drain", 246, 5, Kind::kMask, "units",
          "scalar units that must be idle; pop and outfeed are known, the others are not", Evidence::kInferred),
    kUnitNames);

constexpr Field threshold(int counter) {
  return field(kThresholdNames[counter], 93 + 16 * counter, 16, Kind::kSigned, "count",
               "value of that scalar counter that is waited for, if its compare flag is set", Evidence::kExecuted);
}
constexpr Field compare(int counter) {
  return flag(kCompareNames[counter], 237 + counter, "waits for that scalar counter", Evidence::kExecuted);
}

}  // namespace scalar_fence

}  // namespace reef::isa

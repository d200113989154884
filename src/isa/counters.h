// SPDX-License-Identifier: Apache-2.0
// The synchronization counters that instructions wait for, count up and set: chip/machine.h.
#pragma once

#include "chip/machine.h"

namespace reef::isa {

using chip::kScalarCounterNames;
using chip::kTileCounterNames;
using chip::ScalarCounter;
using chip::TileCounter;
inline constexpr int kTileCounterCount = chip::kTileCounters;
inline constexpr int kScalarCounterCount = chip::kScalarCounters;

}  // namespace reef::isa
